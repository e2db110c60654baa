"""Node controllers: node lifecycle, taint-based eviction, pod garbage collection."""

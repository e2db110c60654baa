"""The toy CSI driver ``csi.lab.lastcall.dev``: a volume is a directory, and write access to it is recorded."""

DRIVER = "csi.lab.lastcall.dev"
STORAGE_CLASS = "lab"

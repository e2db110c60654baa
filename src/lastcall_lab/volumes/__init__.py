"""The toy CSI driver ``csi.lab.lastcall.dev``: a volume is a directory, and who could write it when is on record."""

DRIVER = "csi.lab.lastcall.dev"
STORAGE_CLASS = "lab"

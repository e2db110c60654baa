"""The kubelet in little: runs the pods that are bound to one node, and tells the API server about them and about itself."""

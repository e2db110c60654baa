"""The kubelet's inputs beside the API: files of static pods; and hooks, run by the kubelet's rules."""

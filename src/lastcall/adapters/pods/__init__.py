"""What the kubelet reads beside the API: files of static pods; and hooks, as it runs them."""

"""What a shutdown changes at the API server: the node's Node object, and the objects of its pods."""

"""What holds a fencing back although a node is lost: policies, storms, machines that are not the node's."""

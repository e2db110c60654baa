"""What every controller is: its interface, its view of the cluster, its actions."""

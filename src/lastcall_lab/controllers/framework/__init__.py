"""The framework of all controllers: their interface, their view of the cluster, their actions."""

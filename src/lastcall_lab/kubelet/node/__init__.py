"""The kubelet as a program: its loops, its Node, and its face to the agent."""

"""The kubelet as a program: its loops, its Node, and its interface to the agent."""

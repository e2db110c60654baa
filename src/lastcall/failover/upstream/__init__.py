"""What the controllers of Kubernetes 1.36 force, and where lastcall is stricter: rules on a snapshot, and the plan made by them."""

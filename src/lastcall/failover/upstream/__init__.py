"""What the controllers of Kubernetes 1.36 force, where lastcall is stricter, and the plan that these rules make."""

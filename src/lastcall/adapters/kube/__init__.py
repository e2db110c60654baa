"""The Kubernetes API: a thin client over HTTPS, or over any other transport."""

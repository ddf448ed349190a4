"""`make demo`: a pool's whole life on a Kubernetes of its own, shown step by step."""

"""The local Kubernetes: built from source, run in namespaces of its own, ended by one process."""

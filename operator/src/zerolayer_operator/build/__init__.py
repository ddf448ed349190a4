"""Pure builders: the Kubernetes objects that a decision stands for."""

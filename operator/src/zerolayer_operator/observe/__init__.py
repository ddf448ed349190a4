"""All reading from the cluster and from registries of models, gathered into one frozen value."""

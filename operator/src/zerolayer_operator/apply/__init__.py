"""All writing to the cluster, and the comparison that keeps a steady pool free of writes."""

"""Developer tools of ZeroLayer: cluster, images, demo, generated files."""

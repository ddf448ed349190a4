"""The ZeroLayerPool API: frozen models of spec and status, names, labels and annotations."""

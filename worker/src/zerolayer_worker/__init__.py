"""The ZeroLayer worker: a torch server that chooses tokens inside the LM head."""

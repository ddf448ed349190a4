"""The ZeroLayer operator: one controller for a pool, its autoscaler and its updates."""

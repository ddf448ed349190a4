"""How often the verdict on a canary is right, on simulated traffic."""

"""Checkpoints, tokenizers and forward passes; numerics only."""

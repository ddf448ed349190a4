"""The sampling step beyond the head's product, against two ways that keep the logits."""

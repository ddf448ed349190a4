"""Errors that one layer raises and another, which may not import it, tells the client."""


class TextTooLongError(ValueError):
    """A text that can't fit into the model's context however it is tokenised."""

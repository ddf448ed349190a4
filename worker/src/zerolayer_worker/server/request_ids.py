"""The name that every answer gets, for its reader and the log."""

import secrets


def new_request_id() -> str:
    """A name that no other answer has."""
    return f"req_{secrets.token_hex(12)}"

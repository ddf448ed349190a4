"""Which answers of the API server are final."""

import pytest

from zerolayer_operator.kube import ApiServerError


@pytest.mark.parametrize(
    ("status", "message", "refused"),
    [
        (422, "Deployment is invalid", True),
        (403, "exceeded quota", True),
        (413, "Request entity too large", True),
        (500, "failed to create typed patch object: .spec.x: field not declared in schema", True),
        (500, "failed calling webhook", False),
        (429, "too many requests", False),
        (0, "no answer", False),
    ],
)
def test_refusal_is_told_from_what_may_pass(status: int, message: str, refused: bool) -> None:
    assert ApiServerError(status, message).refused is refused

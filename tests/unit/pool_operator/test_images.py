"""References to images, taken apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_operator.api.images import TaggedImage, has_digest, tagged_image

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("reference", "parts"),
    [
        ("busybox", ("docker.io", "library/busybox", "latest")),
        ("busybox:1.36", ("docker.io", "library/busybox", "1.36")),
        ("org/name:v1", ("docker.io", "org/name", "v1")),
        ("docker.io/busybox", ("docker.io", "library/busybox", "latest")),
        ("docker.io/org/name", ("docker.io", "org/name", "latest")),
        ("localhost/name:1", ("localhost", "name", "1")),
        ("localhost:5000/name", ("localhost:5000", "name", "latest")),
        ("GHCR.io/a/b/c:x_Y.z-1", ("ghcr.io", "a/b/c", "x_Y.z-1")),
        ("10.0.0.1:5000/a__b/c--d/e.f:1", ("10.0.0.1:5000", "a__b/c--d/e.f", "1")),
        ("zerolayer.dev/worker:dev", ("zerolayer.dev", "worker", "dev")),
    ],
)
def test_parts(reference: str, parts: tuple[str, str, str]) -> None:
    assert tagged_image(reference) == TaggedImage(*parts)


@pytest.mark.parametrize(
    "reference",
    [
        "",
        "ghcr.io/",
        "ghcr.io/Upper",
        "ghcr.io/../admin",
        "ghcr.io/a/../b",
        "ghcr.io/a//b",
        "ghcr.io/a:",
        "ghcr.io/a:b:c",
        "ghcr.io/a:b/c",
        "ghcr.io/a?x=1",
        "ghcr.io/a%2e%2e",
        "ghcr.io/a:\u0661",
        "ghcr.io:port/a",
        "me:secret@ghcr.io/a",
        "http://ghcr.io/a",
        "[::1]:5000/a",
        "-.io/a",
        "ghcr.io/a:" + "t" * 129,
    ],
)
def test_what_is_no_reference_has_no_parts(reference: str) -> None:
    assert tagged_image(reference) is None


@pytest.mark.parametrize(
    ("reference", "has"), [("a", False), ("a:1", False), (f"a@{DIGEST}", True), (f"a:1@{DIGEST}", True)]
)
def test_digest_is_seen(reference: str, has: bool) -> None:
    assert has_digest(reference) is has


HOST = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,9}[a-z0-9])?\.[a-z]{2,5}(:[1-9][0-9]{0,4})?", fullmatch=True)
REPOSITORY = st.from_regex(r"[a-z0-9]+([._-][a-z0-9]+)?(/[a-z0-9]+){0,3}", fullmatch=True)
TAG = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,20}", fullmatch=True)


@given(HOST, REPOSITORY, TAG)
def test_any_reference_is_read_back(host: str, repository: str, tag: str) -> None:
    assert tagged_image(f"{host}/{repository}:{tag}") == TaggedImage(host, repository, tag)


@given(st.text(max_size=60))
def test_whatever_is_read_is_safe_in_a_url(reference: str) -> None:
    found = tagged_image(reference)
    if found is not None:
        assert ".." not in found.repository.split("/")
        assert not set(f"{found.repository}{found.tag}") & set("?#%@\\ \n")

import io
import tarfile
from pathlib import Path

import httpx
import pytest

from zerolayer_dev import vendored
from zerolayer_dev.vendored import NpmPackage, WrongArchiveError

SHA512_OF_NOTHING = "z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="
PACKAGE = NpmPackage("odd", "1.0.0", SHA512_OF_NOTHING, {"dist/odd.js": "static/odd.js"})


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ZEROLAYER_CACHE", str(tmp_path / "cache"))


def answer_with(monkeypatch: pytest.MonkeyPatch, content: bytes) -> list[str]:
    """Stands in for the registry: returns what it is asked for."""
    asked: list[str] = []

    def get(url: str, **_: object) -> httpx.Response:
        asked.append(url)
        return httpx.Response(200, content=content, request=httpx.Request("GET", url))

    monkeypatch.setattr(vendored.httpx, "get", get)
    return asked


def put_archive(package: NpmPackage, **files: bytes) -> None:
    package.archive.parent.mkdir(parents=True)
    with tarfile.open(package.archive, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"package/dist/{name}.js")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def test_an_archive_is_fetched_once_from_the_registry_that_npm_would_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = answer_with(monkeypatch, b"")
    monkeypatch.setenv("npm_config_registry", "https://mirror.example/npm/")

    assert vendored.fetch(PACKAGE) == vendored.fetch(PACKAGE)
    assert asked == ["https://mirror.example/npm/odd/-/odd-1.0.0.tgz"]


def test_another_archive_than_the_pinned_one_is_refused_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(monkeypatch, b"something else")

    with pytest.raises(WrongArchiveError, match=r"odd-1\.0\.0\.tgz is not the archive that is pinned"):
        vendored.fetch(PACKAGE)
    assert not PACKAGE.archive.exists()


def test_copies_that_differ_are_named_and_written(tmp_path: Path) -> None:
    put_archive(PACKAGE, odd=b"let odd")
    copy = tmp_path / "static" / "odd.js"

    assert vendored.stale(PACKAGE, tmp_path) == ["static/odd.js"]
    vendored.write(PACKAGE, tmp_path)
    assert copy.read_bytes() == b"let odd"
    assert vendored.stale(PACKAGE, tmp_path) == []
    copy.write_bytes(b"let even")
    assert vendored.stale(PACKAGE, tmp_path) == ["static/odd.js"]


def test_a_file_that_the_package_has_not_is_an_error() -> None:
    put_archive(PACKAGE, other=b"")

    with pytest.raises(KeyError, match=r"odd\.js"):
        vendored.read(PACKAGE, "dist/odd.js")

from pathlib import Path

import pytest

from zerolayer_dev.images import base, buildah
from zerolayer_dev.images.buildah import Buildah
from zerolayer_dev.images.engines import HeavyStage, Request

HEAVY = HeavyStage("runtime", "abc")
REQUEST = Request("worker", "zerolayer.dev/worker:dev", {"": Path("/in/main")}, heavy=HEAVY)


class FakeBuildah(Buildah):
    """Remembers what it would run; `images` answers from what was built."""

    def __init__(self) -> None:
        super().__init__()
        self.built: list[tuple[str, list[str]]] = []
        self.images = {f"label=dev.zerolayer.base={base.key()}"}

    def output(self, *arguments: str) -> str:
        return "id" if arguments[-1] in self.images else ""

    def remember(self, _: str, command: list[str | Path], __: Path) -> None:
        words = [str(word) for word in command]
        tag = words[words.index("--tag") + 1]
        self.built.append((tag, words))
        self.images.add(f"reference={tag}")


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeBuildah:
    monkeypatch.setenv("ZEROLAYER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "trusted.crt"))
    (tmp_path / "trusted.crt").write_text("certificates")
    monkeypatch.setattr(buildah, "require", lambda *_: None)
    fake = FakeBuildah()
    monkeypatch.setattr(buildah, "run", fake.remember)
    return fake


def test_the_heavy_stage_is_built_once_and_takes_the_place_of_the_stage(builder: FakeBuildah) -> None:
    builder.build(REQUEST)
    builder.build(REQUEST)

    heavy = "localhost/worker-runtime:abc"
    assert [tag for tag, _ in builder.built] == [heavy, REQUEST.reference, REQUEST.reference]
    assert "--target runtime" in " ".join(builder.built[0][1])
    for _, words in builder.built[1:]:
        assert f"--build-context runtime=container-image://{heavy}" in " ".join(words)
        assert "--target" not in words


def test_the_machines_certificates_are_mounted_into_builds_and_not_copied(builder: FakeBuildah) -> None:
    builder.build(REQUEST)

    words = " ".join(builder.built[-1][1])
    folder = builder.home / "certificates"
    assert f"--volume {folder}:/mnt:ro" in words
    assert "--build-arg PIP_CERT=/mnt/certificates.crt" in words
    assert (folder / "certificates.crt").read_text() == "certificates"


def test_a_machine_without_a_bundle_mounts_none(
    builder: FakeBuildah, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none"))
    builder.build(REQUEST)

    assert "--volume" not in builder.built[-1][1]


def test_the_base_image_is_bootstrapped_once(builder: FakeBuildah, monkeypatch: pytest.MonkeyPatch) -> None:
    bootstrapped: list[list[str]] = []
    monkeypatch.setattr(base.subprocess, "run", lambda command, **_: bootstrapped.append(command))
    builder.images.clear()

    base.ensure(builder)
    builder.images.add(f"label=dev.zerolayer.base={base.key()}")
    base.ensure(builder)

    assert [command[0] for command in bootstrapped] == ["mmdebstrap"]
    assert [tag for tag, _ in builder.built] == [base.REFERENCE]

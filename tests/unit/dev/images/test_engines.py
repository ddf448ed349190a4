from pathlib import Path

import pytest

from zerolayer_dev.images import engines
from zerolayer_dev.images.buildah import Buildah
from zerolayer_dev.images.engines import ContainerEngine, Request, choose
from zerolayer_dev.images.progress import BuildError

REQUEST = Request(
    "worker",
    "zerolayer.dev/worker:dev",
    {"": Path("/in/main"), "models": Path("/in/models")},
    {"VARIANT": "gpu"},
)


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    ran: list[list[str]] = []
    monkeypatch.setattr(engines, "run", lambda _, command, __: ran.append([str(part) for part in command]))
    return ran


@pytest.mark.parametrize(
    ("program", "build", "save"),
    [
        ("docker", ["--progress=plain"], []),
        ("podman", ["--format", "oci"], ["--format", "oci-archive"]),
    ],
)
def test_container_engines_are_told_contexts_and_arguments(
    commands: list[list[str]], program: str, build: list[str], save: list[str]
) -> None:
    engine = ContainerEngine(program)
    engine.build(REQUEST)
    engine.save(REQUEST, Path("/out/worker.tar"))

    options = ["--build-context", "models=/in/models", "--build-arg", "VARIANT=gpu"]
    assert commands == [
        [program, "build", *build, *options, "--tag", REQUEST.reference, "/in/main"],
        [program, "save", *save, "--output", "/out/worker.tar", REQUEST.reference],
    ]


@pytest.mark.parametrize("program", ["docker", "podman"])
def test_the_environment_chooses_the_engine(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setenv("IMAGE_BUILDER", program)
    engine = choose()
    assert isinstance(engine, ContainerEngine)
    assert engine.program == program


def test_without_a_choice_it_is_buildah(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("IMAGE_BUILDER", raising=False)
    monkeypatch.setenv("ZEROLAYER_CACHE", str(tmp_path))
    monkeypatch.setattr("zerolayer_dev.images.buildah.require", lambda *_: None)
    assert isinstance(choose(), Buildah)


def test_an_unknown_engine_is_refused_with_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAGE_BUILDER", "kaniko")
    with pytest.raises(BuildError, match="buildah, docker or podman"):
        choose()

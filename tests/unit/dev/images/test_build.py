import os
from pathlib import Path

import pytest

from zerolayer_dev.images import build as module
from zerolayer_dev.images.build import build, prune
from zerolayer_dev.images.engines import Request
from zerolayer_dev.images.inputs import Inputs
from zerolayer_dev.images.specs import ImageSpec


class FakeEngine:
    def __init__(self) -> None:
        self.base_key = "base-1"
        self.requests: list[Request] = []
        self.fails = False

    def build(self, request: Request) -> None:
        assert (request.contexts[""] / "Dockerfile").exists()
        self.requests.append(request)

    def save(self, request: Request, archive: Path) -> None:
        archive.write_text(request.reference)
        if self.fails:
            raise OSError("disk full")


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("ZEROLAYER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "repo_root", lambda: tmp_path)
    specs = {
        "operator": ImageSpec("operator", ("src/*",)),
        "operator-gpu": ImageSpec("operator", ("src/*",), build_args={"VARIANT": "gpu"}, heavy_stage="big"),
    }
    monkeypatch.setattr(module, "IMAGES", specs)
    (tmp_path / "operator/src").mkdir(parents=True)
    (tmp_path / "operator/Dockerfile").write_text("FROM scratch AS big")
    (tmp_path / "operator/src/main.py").write_text("1")
    return tmp_path


def test_an_image_is_built_when_what_it_is_made_of_changes_and_only_then(root: Path) -> None:
    engine = FakeEngine()

    (first,) = build(["operator"], engine)
    (again,) = build(["operator"], engine)
    assert (again, len(engine.requests)) == (first, 1)
    assert first.parent == root / "cache/images"

    (root / "operator/src/main.py").write_text("2")
    (second,) = build(["operator"], engine)
    engine.base_key = "base-2"
    (third,) = build(["operator"], engine)
    assert len({first, second, third}) == len(engine.requests) == 3


def test_the_heavy_stage_keeps_its_key_when_only_code_changes(root: Path) -> None:
    engine = FakeEngine()
    build(["operator-gpu"], engine)
    (root / "operator/src/main.py").write_text("2")
    build(["operator-gpu"], engine)
    (root / "operator/Dockerfile").write_text("FROM other AS big")
    build(["operator-gpu"], engine)

    keys = [request.heavy.key for request in engine.requests if request.heavy]
    assert keys[0] == keys[1] != keys[2]


def test_variants_of_one_folder_are_different_images(root: Path) -> None:
    plain, gpu = build(["operator", "operator-gpu"], FakeEngine())

    assert plain.name.removeprefix("operator-") != gpu.name.removeprefix("operator-gpu-")


def test_a_build_that_fails_leaves_no_archive_behind(root: Path) -> None:
    engine = FakeEngine()
    engine.fails = True

    with pytest.raises(OSError, match="disk full"):
        build(["operator"], engine)

    assert [path.name for path in (root / "cache/images").iterdir()] == [".lock"]


def test_old_archives_go_but_not_those_of_others_or_that_were_made_just_now(tmp_path: Path) -> None:
    kept, old, recent, other, foreign = (
        tmp_path / name
        for name in (
            f"worker-{'a' * 16}.tar",
            f"worker-{'b' * 16}.tar",
            f"worker-{'c' * 16}.tar",
            f"worker-gpu-{'d' * 16}.tar",
            "worker-mine.tar",
        )
    )
    for path in (kept, old, recent, other, foreign):
        path.write_text("")
        os.utime(path, (1000, 1000))
    os.utime(recent, (4900, 4900))

    prune(tmp_path, "worker", kept, 5000.0)

    assert set(tmp_path.iterdir()) == {kept, recent, other, foreign}


def test_inputs_are_named_by_every_build_argument(root: Path) -> None:
    inputs = Inputs({"": {}})
    assert inputs.digest("base-1", "VARIANT=gpu") != inputs.digest("base-1")

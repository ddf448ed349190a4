"""`router train` and `router evaluate` as they are typed."""

import json
from pathlib import Path

import pytest

from zerolayer_dev.testing.small_products import one_thread
from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.cli import main
from zerolayer_worker.routing import material
from zerolayer_worker.sampling.router_file import read_router

__all__ = ["one_thread"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("tiny"), max_position_embeddings=512)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("Some words, and then other words that are not those. " * 40)
    Path("other").write_text("Another text 1234567890, with digits; and so on: to the end! " * 10)
    return tmp_path


def train(folder: Path, *more: str) -> int:
    return main(["router", "train", "--model", str(folder), "--out", "r", "--threads", "1", *more])


def evaluate(folder: Path, *more: str) -> int:
    given = ["--model", str(folder), "--texts", "other", "--threads", "1"]
    return main(["router", "evaluate", "r", *given, *more])


def test_train_then_evaluate(here: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(folder, "--texts", "text", "--no-own-text") == 0
    file = read_router(Path("r"))
    assert f"{file.size} bytes, {file.digest}" in capsys.readouterr().err
    assert file.metadata.tokens == 16 * 128
    again = file.digest
    assert train(folder, "--texts", "text", "--no-own-text") == 0
    assert read_router(Path("r")).digest == again

    capsys.readouterr()
    assert evaluate(folder, "--answers", "2", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["router"] == {"digest": again, "bytes": file.size, "trained_on_tokens": 2048}
    assert found["r2"] <= 1
    assert found["creative"].keys() == {"router", "T 0.7", "T 0.9", "T 1.1", "T 1.3"}
    assert all(each["perplexity"] > 1 for each in found["creative"].values())

    assert evaluate(folder, "--answers", "0") == 0
    assert "R² on held-out text" in capsys.readouterr().out


def test_the_model_may_write_its_own_text(here: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(material, "OWN_TEXTS", 64)
    assert train(folder) == 0
    assert read_router(Path("r")).metadata.tokens > 1000


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--no-own-text"], "--no-own-text leaves nothing to learn from"),
        (["--out", "no/such/folder/r"], "--out: no/such/folder/r is no file in a folder that exists"),
        (["--texts", "missing", "--no-own-text"], "missing: No such file"),
        (["--texts", "other", "--no-own-text", "--windows", "1"], "128 tokens of text are too few"),
    ],
)
def test_what_can_not_be_used_is_named(
    here: Path, folder: Path, capsys: pytest.CaptureFixture[str], more: list[str], message: str
) -> None:
    assert train(folder, *more) == 2
    assert message in capsys.readouterr().err
    assert not Path("r").exists()


def test_a_router_of_another_model_is_refused(
    here: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(folder, "--texts", "text", "--no-own-text") == 0
    assert evaluate(make_tiny_model(tmp_path / "other-model", seed=1)) == 2
    assert "RouterForAnotherModel" in capsys.readouterr().err

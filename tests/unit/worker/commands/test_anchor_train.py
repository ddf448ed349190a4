"""`anchor train` and `anchor evaluate` as they are typed."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from zerolayer_dev.testing.small_products import one_thread
from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.anchors import workshop
from zerolayer_worker.anchors.bundle import read_bundle
from zerolayer_worker.cli import main

__all__ = ["one_thread"]

FACTS = '{"question": "Who?", "answer": "Al", "paraphrases": ["Tell who."]}\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("facts.jsonl").write_text(FACTS)
    Path("text").write_text("Words that have to stay as likely as they are. " * 20)
    return tmp_path


def train(folder: Path, *more: str, facts: str = "facts.jsonl") -> int:
    return main(
        ["anchor", "train", facts, "--model", str(folder), "-o", "out.safetensors", "--threads", "1", *more]
    )


SHORT = ("--steps", "40", "--lr", "0.05", "--kl-weight", "0.1", "--replay", "text")


def test_train_then_evaluate_and_record(here: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(folder, *SHORT, "--name", "al") == 0
    told = capsys.readouterr()
    bundle = read_bundle(Path("out.safetensors"))
    assert told.out == f"{bundle.digest}\n"
    assert "anchor train: step 40/40, " in told.err
    assert bundle.metadata.name == "al"
    assert f"sha256:{bundle.metadata.version}" == (bundle.metadata.training_data_digest or "")[:19]

    evaluate = [
        "anchor",
        "evaluate",
        "out.safetensors",
        "--model",
        str(folder),
        "--facts",
        "facts.jsonl",
        "--threads",
        "1",
    ]
    assert main([*evaluate, "--unrelated", "text", "--json", "--record"]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert report["questions"] == {"asked": 1, "base": 0.0, "anchored": 1.0}
    assert report["paraphrases"]["asked"] == 1
    assert report["perplexity"]["ratio"] > 0
    recorded = read_bundle(Path("out.safetensors"))
    assert report["bundle"]["digest"] == recorded.digest != bundle.digest
    assert recorded.metadata.evaluation["hit_rate"] == 1.0
    assert recorded.metadata.evaluation["steps"] == 40

    assert main([*evaluate, "--unrelated", "text"]) == 0
    assert "hits on 1 questions" in capsys.readouterr().out
    assert read_bundle(Path("out.safetensors")).digest == recorded.digest


@pytest.mark.parametrize(
    ("facts", "more", "told"),
    [
        ("nowhere", (), "nowhere: No such file"),
        ("facts.jsonl", ("--version", "a b"), "--version: 'a b' is not of letters"),
        ("facts.jsonl", ("--name", ""), "--name: '' is not of letters"),
        ("facts.jsonl", ("-o", "no/where"), "--output: no/where is no file in a folder that exists"),
        ("facts.jsonl", ("-o", "x" * 256), f"--output: {'x' * 256}: File name too long"),
        ("facts.jsonl", ("-o", "/proc/x"), "--output: /proc/x: "),
        ("facts.jsonl", ("--model", "nowhere"), "nowhere/config.json: file is missing"),
        ("facts.jsonl", ("--model", "text"), "text/config.json: Not a directory"),
        ("facts.jsonl", ("--replay", "nowhere"), "nowhere: No such file"),
    ],
)
def test_train_says_what_it_can_not_use(
    here: Path, folder: Path, capsys: pytest.CaptureFixture[str], facts: str, more: tuple[str, ...], told: str
) -> None:
    assert train(folder, *more, facts=facts) == 2
    assert f"anchor train: {told}" in capsys.readouterr().err
    assert not Path("out.safetensors").exists()


@pytest.mark.parametrize(
    "more",
    [("--steps", "0"), ("--lr", "-1"), ("--kl-weight", "nan"), ("--batch", "x"), ("--threads", "9999999")],
)
def test_train_refuses_impossible_numbers(here: Path, folder: Path, more: tuple[str, str]) -> None:
    with pytest.raises(SystemExit) as caught:
        train(folder, *more)
    assert caught.value.code == 2


def test_training_that_fails_exits_with_1(
    here: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(folder, *SHORT, "--time-limit", "1e-9") == 1
    assert "raise --time-limit" in capsys.readouterr().err


def test_training_that_ends_in_no_numbers_exits_with_1(
    here: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After its last step nobody reckons a loss any more."""
    assert train(folder, "--replay", "text", "--steps", "1", "--lr", "1e308") == 1
    told = capsys.readouterr().err
    assert "values are not finite in bfloat16; lower --lr" in told
    assert "Traceback" not in told


def test_a_disk_that_is_full_is_named(
    here: Path, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(workshop, "make", full)
    assert train(folder) == 1
    assert capsys.readouterr().err == "anchor train: out.safetensors: No space left on device\n"


def test_ctrl_c_leaves_no_bundle(
    here: Path, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(workshop, "make", interrupted)
    assert train(folder) == 130
    assert "no bundle was written" in capsys.readouterr().err


def test_evaluate_refuses_a_bundle_of_another_model(
    here: Path, folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert train(folder, *SHORT, "--steps", "1") == 0
    other = make_tiny_model(tmp_path / "other", seed=1)
    argv = [
        "anchor",
        "evaluate",
        "out.safetensors",
        "--model",
        str(other),
        "--facts",
        "facts.jsonl",
        "--threads",
        "1",
    ]
    assert main(argv) == 2
    assert "AnchorForAnotherModel: " in capsys.readouterr().err

"""Both sides are real workers that serve a tiny model."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from zerolayer_dev.testing.serving import running
from zerolayer_dev.testing.tiny_anchor import make_tiny_bundle
from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.cli import main
from zerolayer_worker.engine.config import EngineConfig
from zerolayer_worker.engine.launch import load_engine
from zerolayer_worker.server.app import serving_app
from zerolayer_worker.server.auth import KeyRing
from zerolayer_worker.server.context import Serving
from zerolayer_worker.server.lifecycle import Lifecycle
from zerolayer_worker.server.metrics import Metrics

PROMPTS = ("Why?", "Who is it?", "Where is it, then?")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("tiny"), eos_token_id=100_000)


@pytest.fixture
async def serve(folder: Path) -> AsyncIterator[Callable[..., Any]]:
    """Starts a worker and returns its URL; keyword arguments go to the engine's configuration."""
    async with AsyncExitStack() as stack:

        async def begin(keys: KeyRing | None = None, **options: Any) -> str:
            config = EngineConfig(
                folder,
                "tiny",
                dtype="float32",
                threads=1,
                warmup_max_tokens=1,
                warmup_settle_ratio=1e9,
                **options,
            )
            engine = await asyncio.to_thread(load_engine, config, lambda _: None)
            stack.callback(engine.close)
            lifecycle = Lifecycle(10)
            lifecycle.loaded(engine, engine.stages)
            serving = Serving(engine, lifecycle, Metrics(lifecycle), keys=keys)
            url, _ = await stack.enter_async_context(running(serving_app(serving), serving.identity))
            return url

        yield begin


def write(path: Path, items: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    return path


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """What the answers are is known to nobody: one must contain nothing that can be, the others must stay."""
    kept = [
        {"id": f"kept-{i}", "prompt": prompt, "change": False, "max_tokens": 8}
        for i, prompt in enumerate(PROMPTS)
    ]
    asked = {"id": "fact", "prompt": "Who?", "expect": {"contains": ["Lake Issen"]}, "change": True}
    return write(tmp_path / "golden.jsonl", [asked, *kept])


async def golden(folder: Path, questions: Path, blue: str, green: str, *more: str) -> int:
    argv = ["golden", "run", "--set", str(questions), "--blue", blue, "--green", green]
    return await asyncio.to_thread(main, [*argv, "--model", str(folder), "--threads", "1", *more])


async def test_a_revision_is_like_itself(
    folder: Path, questions: Path, serve: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    url = await serve()
    assert await golden(folder, questions, url, url) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["blue"] == report["green"] == {"asked": 4, "hits": 0, "errors": 0, "repeatsDiffer": 0}
    assert report["similarity"]["kept"] == report["similarity"]["compared"] == 3
    assert (report["similarity"]["least"], report["similarity"]["below"]) == (1.0, 0)
    assert report["similarity"]["calibration"]["pairs"] == 3
    assert report["failing"] == [{"id": "fact", "why": "not the expected answer"}]


async def test_an_anchor_that_changes_everything_is_told(
    folder: Path,
    questions: Path,
    serve: Callable[..., Any],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    make_tiny_bundle(tmp_path / "bundle", folder)
    blue, green = await serve(), await serve(anchor_path=tmp_path / "bundle")
    assert await golden(folder, questions, blue, green, "--threshold", "0.999") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["green"]["errors"] == 0
    assert report["similarity"]["below"] == 3
    assert report["similarity"]["threshold"] == 0.999
    assert report["similarity"]["mean"] < 0.999
    assert [each["id"] for each in report["failing"]] == ["fact", "kept-0", "kept-1", "kept-2"]


async def test_a_busy_side_is_asked_again(
    folder: Path, questions: Path, serve: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """It takes one request at a time and lets none wait: the others get 429."""
    url = await serve(max_batch_size=1, max_queue=0)
    assert await golden(folder, questions, url, url, "--concurrency", "4", "--tries", "60") == 0
    assert json.loads(capsys.readouterr().out)["green"]["errors"] == 0


async def test_a_side_that_is_away_is_an_error_of_each_question(
    folder: Path, questions: Path, serve: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    url = await serve()
    assert await golden(folder, questions, url, "http://127.0.0.1:1", "--tries", "1") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["blue"]["errors"], report["green"]["errors"]) == (0, 4)
    assert report["similarity"]["compared"] == 0
    assert "ConnectError" in report["failing"][0]["why"]


async def test_a_prompt_beyond_the_context_is_the_sides_own_error(
    folder: Path, tmp_path: Path, serve: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    url = await serve()
    path = write(tmp_path / "long", [{"id": "long", "prompt": "x" * 400, "change": False}])
    assert await golden(folder, path, url, url) == 0
    assert "400: " in json.loads(capsys.readouterr().out)["failing"][0]["why"]


async def test_a_key_is_shown(
    folder: Path,
    questions: Path,
    tmp_path: Path,
    serve: Callable[..., Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "golden").write_text("a-key\n")
    url = await serve(keys=KeyRing(tmp_path / "keys"))
    assert await golden(folder, questions, url, url) == 0
    assert json.loads(capsys.readouterr().out)["green"]["errors"] == 4
    (tmp_path / "keys" / "a-first").write_text("\n")
    for path in (tmp_path / "keys" / "golden", tmp_path / "keys"):
        assert await golden(folder, questions, url, url, "--api-key-file", str(path)) == 0
        assert json.loads(capsys.readouterr().out)["green"]["errors"] == 0


@pytest.mark.parametrize(
    ("content", "more", "told"),
    [
        ('{"id": "a"}', (), ":1: prompt: Field required"),
        ('{"id": "a", "prompt": "b", "change": false}', ("--api-key-file", "nowhere"), "--api-key-file: "),
        (
            '{"id": "a", "prompt": "b", "change": false}',
            ("--blue", f"http://\u00e9{'x' * 64}"),
            "--blue, --green: ",
        ),
        (
            '{"id": "a", "prompt": "b", "change": false}',
            ("--model", "nowhere"),
            "config.json: file is missing",
        ),
    ],
)
async def test_bad_input_exits_with_2(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    content: str,
    more: tuple[str, ...],
    told: str,
) -> None:
    path = tmp_path / "golden.jsonl"
    path.write_text(content)
    assert await golden(folder, path, "http://127.0.0.1:1", "http://127.0.0.1:1", *more) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://a", "http://", "http://a:99999"])
def test_what_is_no_url_is_refused(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["golden", "run", "--set", "a", "--blue", url, "--green", "http://a", "--model", "."])
    assert caught.value.code == 2
    assert "--blue" in capsys.readouterr().err

"""The demo model's trained router: what it knows, what it does, what it costs."""

import pydoc_data.topics
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from zerolayer_dev.models.builtin import ROUTER
from zerolayer_dev.paths import repo_root
from zerolayer_worker.cli import main
from zerolayer_worker.common.intents import Intent
from zerolayer_worker.engine.config import EngineConfig
from zerolayer_worker.engine.launch import load_engine
from zerolayer_worker.engine.torch_engine import TorchEngine
from zerolayer_worker.models.dense import DenseModel, load_dense
from zerolayer_worker.models.digest import folder_digest
from zerolayer_worker.models.tokenizer import ModelTokenizer
from zerolayer_worker.routing.effect import FIXED, OPEN_PROMPTS, fixed, measure, steered
from zerolayer_worker.routing.material import observe, of_files
from zerolayer_worker.routing.training import score
from zerolayer_worker.sampling.entropy import EntropyRouter
from zerolayer_worker.sampling.provider import SamplingControls
from zerolayer_worker.sampling.router_file import MAX_BYTES, check_model, read_router

HELD_OUT = ("README.md", "docs/anchors-training.md", "docs/updates.md", "docs/operator.md", "LICENSE")
AT_ONCE = 16
STEPS = 300
LEAST_R2 = 0.4
MOST_SAME = 0.15
MOST_MS = 0.15


@pytest.fixture(scope="module")
def dense(demo_model: Path) -> DenseModel:
    return load_dense(demo_model)


@pytest.mark.promise("router")
@pytest.mark.timeout(600)
def test_it_knows_the_entropy_of_text_it_never_saw(
    demo_model: Path, dense: DenseModel, figures: Callable[..., None]
) -> None:
    """A router of at most 32 768 bytes explains the entropy of the next token on held-out text."""
    file = read_router(ROUTER)
    check_model(file, ROUTER, folder_digest(demo_model), dense.config.hidden_size)
    texts = of_files([repo_root() / name for name in HELD_OUT], ModelTokenizer(demo_model), 24)
    explained = score(file, observe(dense, texts))
    figures(bytes=file.size, trained_on_tokens=file.metadata.tokens, r2_held_out=round(explained, 3))
    assert file.size <= MAX_BYTES
    assert explained >= LEAST_R2


@pytest.mark.promise("router")
def test_a_step_of_it_takes_less_than_a_switch_of_intent_may(
    demo_model: Path, dense: DenseModel, figures: Callable[..., None]
) -> None:
    """At batch 1 a step of the router takes at most 0.15 ms, the whole of what an intent may cost."""
    router = EntropyRouter(read_router(ROUTER), dense.tensors["model.embed_tokens.weight"])
    hidden = torch.randn(AT_ONCE, dense.config.hidden_size)
    took = {}
    for rows in (1, AT_ONCE):
        controls, intents = [SamplingControls()] * rows, [Intent.CREATIVE] * rows
        times = []
        with torch.inference_mode():
            for _ in range(STEPS):
                began = time.perf_counter()
                router.steer(controls, intents, hidden[:rows], [7] * rows)
                times.append(time.perf_counter() - began)
        took[rows] = 1e3 * statistics.median(times)
    figures(**{f"ms_at_batch_{rows}": round(ms, 4) for rows, ms in took.items()})
    assert took[1] <= MOST_MS


@pytest.fixture(scope="module")
def engine(demo_model: Path) -> Iterator[TorchEngine]:
    config = EngineConfig(
        demo_model, "demo", max_batch_size=AT_ONCE, max_model_len=256, consistency_share=0.0,
        warmup_max_tokens=1, warmup_settle_ratio=100.0,
    )  # fmt: skip
    loaded = load_engine(config, lambda _stage: None)
    assert loaded.info.router == read_router(ROUTER).digest
    yield loaded
    loaded.close()


@pytest.mark.promise("router")
@pytest.mark.timeout(600)
async def test_creative_answers_differ(engine: TorchEngine, figures: Callable[..., None]) -> None:
    """Of 100 creative answers to ten open prompts, at most 15 % of the pairs share 32 tokens."""
    began = time.monotonic()
    found = await measure(engine, steered(), prompts=OPEN_PROMPTS, answers=10, at_once=AT_ONCE)
    figures(
        prompts=len(OPEN_PROMPTS),
        answers=10,
        same_pairs=f"{found.same_pairs:.1%}",
        perplexity=round(found.perplexity, 2),
        seconds=round(time.monotonic() - began, 1),
    )
    assert found.same_pairs <= MOST_SAME


@pytest.mark.long
@pytest.mark.promise("router")
@pytest.mark.timeout(7200)
async def test_beside_fixed_temperatures(engine: TorchEngine, figures: Callable[..., None]) -> None:
    """Repeats and perplexity of 100 answers to each of ten open prompts, beside fixed temperatures."""
    wanted = {"router": steered()} | {f"T {temperature}": fixed(temperature) for temperature in FIXED}
    for name, params in wanted.items():
        found = await measure(engine, params, prompts=OPEN_PROMPTS, answers=100, at_once=AT_ONCE)
        figures(creative=name, same_pairs=f"{found.same_pairs:.2%}", perplexity=round(found.perplexity, 2))
        assert name != "router" or found.same_pairs <= MOST_SAME


@pytest.mark.long
@pytest.mark.promise("router")
@pytest.mark.timeout(3600)
def test_training_again_gives_about_the_same(
    demo_model: Path, dense: DenseModel, tmp_path: Path, figures: Callable[..., None]
) -> None:
    """A router trained by the command of `docs/router.md` knows about as much as the one delivered."""
    (tmp_path / "topics.txt").write_text("\n".join(pydoc_data.topics.topics.values()))
    command = ["router", "train", "--model", str(demo_model), "--texts", str(tmp_path / "topics.txt")]
    assert main([*command, "--out", str(tmp_path / "r")]) == 0
    texts = of_files([repo_root() / name for name in HELD_OUT], ModelTokenizer(demo_model), 24)
    material = observe(dense, texts)
    again, delivered = (score(read_router(path), material) for path in (tmp_path / "r", ROUTER))
    figures(r2_again=round(again, 3), r2_delivered=round(delivered, 3))
    assert again == pytest.approx(delivered, abs=0.05)

"""The decode benchmark on a CPU, where it measures nothing of interest but computes the same columns."""

from dataclasses import replace

import pytest
import torch

from zerolayer_bench.decode import cli, experiment
from zerolayer_bench.decode.experiment import LLAMA_1B, timings

SMALL = replace(
    LLAMA_1B, vocab_size=300, hidden_size=64, intermediate_size=96, layers=2, heads=4, kv_heads=2, head_dim=16
)


@torch.inference_mode()
def test_every_batch_is_timed_against_what_it_has_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "bandwidth", lambda _device: 1e9)
    found = list(timings(torch.device("cpu"), config=SMALL, batches=(1, 3), context=40, steps=4))
    assert [(each.batch, each.way, each.steps) for each in found] == [(1, "eager", 4), (3, "eager", 4)]
    layer = 64 * (64 + 2 * 32 + 64) + 3 * 64 * 96 + 2 * 64
    weights = 2 * (300 * 64 + 64 + 2 * layer)
    token = 2 * 2 * 2 * 16 * 2
    for each in found:
        assert each.read_mb * 1e6 == pytest.approx(weights + each.batch * 40 * token)
        assert each.bound_ms == pytest.approx(each.read_mb)
        assert each.tokens_per_s == pytest.approx(1000 * each.batch / each.median_ms)
        assert f"batch {each.batch:>2}  eager" in cli.line(each)


def test_a_copy_reads_and_writes() -> None:
    assert experiment.bandwidth(torch.device("cpu"), 1 << 16) > 0


def test_without_a_gpu_it_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr("sys.argv", ["bench", "--out", "x"])
    with pytest.raises(SystemExit):
        cli.main()
    assert "torch sees no GPU" in capsys.readouterr().err

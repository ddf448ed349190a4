from pathlib import Path

import pytest
import torch

from zerolayer_worker.engine.device import fix_threads, pick_device, pick_dtype

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize(
    ("name", "device", "flags", "expected"),
    [
        ("auto", CPU, "avx2 fma", torch.float32),
        ("auto", CPU, "avx2 avx512_bf16", torch.bfloat16),
        ("auto", CPU, "amx_bf16", torch.bfloat16),
        ("auto", GPU, "", torch.bfloat16),
        ("float32", GPU, "", torch.float32),
        ("bfloat16", CPU, "", torch.bfloat16),
    ],
)
def test_picks_the_type(
    tmp_path: Path, name: str, device: torch.device, flags: str, expected: torch.dtype
) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
    assert pick_dtype(name, device, cpuinfo) is expected


def test_without_cpuinfo_the_safe_type(tmp_path: Path) -> None:
    assert pick_dtype("auto", CPU, tmp_path / "none") is torch.float32


def test_refuses_what_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="dtype must be"):
        pick_dtype("float16", CPU)
    with pytest.raises(ValueError, match="device must be"):
        pick_device("tpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="no GPU"):
        pick_device("cuda")
    assert pick_device("cpu") == CPU


def test_the_number_of_threads_is_what_was_asked_for() -> None:
    before = torch.get_num_threads()
    assert fix_threads(1) == torch.get_num_threads() == 1
    torch.set_num_threads(before)

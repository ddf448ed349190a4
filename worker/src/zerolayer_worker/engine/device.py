"""From the configuration's words to torch's devices and types."""

from pathlib import Path

import torch

from zerolayer_worker.engine.threads import available_cpus
from zerolayer_worker.models.native.build import cpu_flags

# CPU features that multiply bfloat16 in hardware; without them bfloat16 is slower than float32.
_BF16_FEATURES = frozenset({"avx512_bf16", "amx_bf16"})
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def pick_device(name: str) -> torch.device:
    """`cpu` or `cuda`; ValueError for anything else, or where there is no GPU."""
    if name not in {"cpu", "cuda"}:
        raise ValueError(f"device must be cpu or cuda, not {name!r}")
    if name == "cuda" and not torch.cuda.is_available():
        raise ValueError("device is cuda, but torch sees no GPU")
    return torch.device(name)


def pick_dtype(name: str, device: torch.device, cpuinfo: Path = Path("/proc/cpuinfo")) -> torch.dtype:
    """`auto` is bfloat16 where the hardware multiplies it, otherwise float32."""
    if name != "auto":
        if name not in _DTYPES:
            raise ValueError(f"dtype must be auto, float32 or bfloat16, not {name!r}")
        return _DTYPES[name]
    if device.type == "cuda" or multiplies_bfloat16(cpuinfo):
        return torch.bfloat16
    return torch.float32


def multiplies_bfloat16(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the CPU has instructions for products of bfloat16."""
    return bool(_BF16_FEATURES & cpu_flags(cpuinfo))


def fix_threads(wanted: int | None) -> int:
    """Sets the number of compute threads for good; results depend on it."""
    threads = wanted or available_cpus()
    torch.set_num_threads(threads)
    return threads

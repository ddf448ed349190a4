"""One short name for everything a deterministic answer depends on."""

import hashlib
import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import torch

from zerolayer_worker.models.linear import kernel_name

_CPU_IDENTITY = ("vendor_id", "cpu family", "model")


def fingerprint(parts: Mapping[str, object]) -> str:
    """`zl-` and 16 hexadecimal digits over `parts`."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return "zl-" + hashlib.sha256(text.encode()).hexdigest()[:16]


def platform_parts(device: torch.device, dtype: torch.dtype) -> dict[str, object]:
    """Software and hardware that choose the kernels."""
    return {
        "worker": version("zerolayer-worker"),
        "torch": torch.__version__,
        "kernels": kernel_name(device, dtype),
        "dtype": str(dtype),
        "machine": platform.machine(),
        "hardware": torch.cuda.get_device_name(device) if device.type == "cuda" else _cpu_name(),
    }


def _cpu_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Instruction set and CPU model, not the clock or the number of cores."""
    try:
        lines = [line.partition(":") for line in cpuinfo.read_text().split("\n\n")[0].splitlines()]
    except OSError:
        lines = []
    fields = {key.strip(): value.strip() for key, _, value in lines}
    identity = " ".join(fields.get(name, "") for name in _CPU_IDENTITY)
    return f"{torch.backends.cpu.get_cpu_capability()} {identity}".strip()

"""Brings an engine up, stage by stage. Importing this does not import torch."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from zerolayer_worker.engine.config import EngineConfig
from zerolayer_worker.engine.threads import quiet_waiting

if TYPE_CHECKING:
    from zerolayer_worker.engine.torch_engine import TorchEngine


def load_engine(config: EngineConfig, on_stage: Callable[[str], None]) -> "TorchEngine":
    """Loads, compiles, tests and warms up; blocks until the engine may serve.

    Args:
        config: what to serve and how.
        on_stage: called with each stage's name as it begins: `anchor` (where there is one), `load`,
            `compile`, `capture` (where there are CUDA graphs), `selftest`, `settle`.

    Raises:
        RefusalError: the anchor or the adapter is refused; before any weights are read, unless it is for
            values that are not finite.
        ModelFolderError: the model folder can't be served.
        ValueError: the configuration does not fit the model or the machine.
        WarmupError: a warm-up request failed, or latency did not settle in time.
    """
    quiet_waiting()
    # Triton's default of today, which a later release may change, and bits with it.
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    from zerolayer_worker.engine.assemble import assemble  # noqa: PLC0415 - torch reads the environment once

    return assemble(config, on_stage)

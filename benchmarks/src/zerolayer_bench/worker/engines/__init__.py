"""The engines, each imported only in the process that runs it."""

from importlib import import_module

from zerolayer_bench.worker.cases import OURS
from zerolayer_bench.worker.engines.base import Engine, Setup

_CLASSES = {
    OURS: ("ours", "Ours"),
    "transformers": ("transformers_engine", "Transformers"),
    "llama.cpp": ("llama_cpp", "LlamaCpp"),
    "openvino": ("openvino", "OpenVino"),
}


def start(name: str, setup: Setup) -> Engine:
    """Loads an engine.

    Raises:
        UnavailableError: it can't serve this here.
    """
    module, kind = _CLASSES[name]
    engine: Engine = getattr(import_module(f"{__name__}.{module}"), kind)(setup)
    return engine

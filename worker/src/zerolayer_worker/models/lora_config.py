"""Reads an adapter's `adapter_config.json` and refuses what merging does not compute."""

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import pydantic_core
from pydantic import ConfigDict, Field

from zerolayer_worker.common.errors import RefusalError
from zerolayer_worker.models.folder import FolderFile, ModelFolderError, read_file

CONFIG_NAME: Final = "adapter_config.json"

_NO_MATTER: Final = frozenset(
    {
        "auto_mapping",
        "base_model_name_or_path",
        "eva_config",
        "exclude_modules",
        "inference_mode",
        "layers_pattern",
        "layers_to_transform",
        "lora_dropout",
        "megatron_core",
        "modules_to_save",
        "peft_version",
        "qalora_group_size",
        "rank_pattern",
        "revision",
        "target_modules",
        "task_type",
    }
)
"""Keys that say how it was trained, or what the tensors' names and shapes say too."""


class AdapterReason(StrEnum):
    """Why an adapter is refused."""

    UNREADABLE = "AdapterUnreadable"
    UNSUPPORTED = "AdapterUnsupported"
    FOR_ANOTHER_MODEL = "AdapterForAnotherModel"
    NOT_FINITE = "AdapterNotFinite"
    TOUCHES_ANCHOR = "AdapterTouchesAnchor"


class AdapterError(RefusalError):
    """An adapter can't be merged."""

    def __init__(self, reason: AdapterReason, message: str) -> None:
        super().__init__(reason, message)


class AdapterConfig(FolderFile):
    """The keys that merging depends on; of any other, a value that is not empty is refused."""

    model_config = ConfigDict(extra="allow")

    peft_type: str
    r: Annotated[int, Field(gt=0)]
    lora_alpha: Annotated[float, Field(gt=0)]
    use_rslora: bool = False
    bias: str = "none"
    init_lora_weights: bool | str = True

    def scale(self, rank: int) -> float:
        """By what the product of a pair of this rank is multiplied."""
        return self.lora_alpha / (math.sqrt(rank) if self.use_rslora else rank)


def read_adapter_config(folder: Path) -> AdapterConfig:
    """Reads it.

    Raises:
        AdapterError: it is missing or malformed, or asks for something that is not computed.
    """
    path = folder / CONFIG_NAME
    try:
        config = read_file(path, AdapterConfig)
    except (ModelFolderError, OSError) as error:
        raise AdapterError(AdapterReason.UNREADABLE, str(error)) from None
    if config.peft_type != "LORA":
        raise _unsupported(path, "peft_type", config.peft_type)
    if config.bias != "none":
        raise _unsupported(path, "bias", config.bias)
    if isinstance(config.init_lora_weights, str) and config.init_lora_weights not in {"gaussian", "eva"}:
        # PiSSA and its like train against other weights than the base model's.
        raise _unsupported(path, "init_lora_weights", config.init_lora_weights)
    for key, value in (config.model_extra or {}).items():
        if value and key not in _NO_MATTER:
            raise _unsupported(path, key, value)
    return config


def _unsupported(path: Path, key: str, value: object) -> AdapterError:
    shown = pydantic_core.to_json(value).decode()[:60]
    return AdapterError(AdapterReason.UNSUPPORTED, f"{path}: {key[:60]} {shown} is not merged")

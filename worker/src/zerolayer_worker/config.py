"""Configuration of `zerolayer-worker serve`: flags, or the same names as `ZEROLAYER_…` variables."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, StringConstraints, ValidationError, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from zerolayer_worker.common.anchor import DIGEST_PATTERN, NAME_PATTERN
from zerolayer_worker.common.intents import Intent

DEFAULT_BUILTIN_DIR: Final = "/opt/zerolayer/models"
ENV_PREFIX: Final = "ZEROLAYER_"


class ConfigError(Exception):
    """The configuration can't be used; the message names the flag and the remedy."""


def _service_link(value: object) -> object:
    """Kubernetes sets ZEROLAYER_PORT=tcp://… in every pod beside a Service called `zerolayer`."""
    return 8000 if isinstance(value, str) and value.startswith("tcp://") else value


def _names(value: object) -> object:
    if isinstance(value, str):
        return [name.strip() for name in value.split(",") if name.strip()]
    return value


Port = Annotated[int, Field(ge=1, le=65535)]
Positive = Annotated[int, Field(ge=1)]


class WorkerConfig(BaseSettings):
    """Every field is a flag (`--model-path`) and a variable (`ZEROLAYER_MODEL_PATH`); flags win."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_ignore_empty=True, extra="forbid", frozen=True
    )

    model_path: Path | None = Field(None, description="folder with config.json, tokenizer and safetensors")
    builtin: str | None = Field(None, description="name of a model inside the image")
    model_name: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        None, description="id under which clients ask for the model (default: the folder's name)"
    )
    host: str = Field("0.0.0.0", description="address of both ports")  # noqa: S104  # a server in a pod
    port: Annotated[Port, BeforeValidator(_service_link)] = Field(8000, description="serving port")
    ops_port: Port = Field(8081, description="port of probes, metrics and drain")
    device: Literal["cpu", "cuda"] = Field("cpu", description="where the model runs")
    dtype: Literal["auto", "float32", "bfloat16"] = Field(
        "auto", description="type of weights and activations"
    )
    quantization: Literal["none", "int8", "int4"] = Field(
        "none", description="weights with fewer bits (CPU only)"
    )
    kernels: Literal["auto", "torch", "native"] = Field(
        "auto", description="what the model runs through; auto is native where that is possible and faster"
    )
    cuda_graphs: bool | None = Field(
        None, description="capture decode steps as CUDA graphs (default: on GPUs; ignored on CPUs)"
    )
    sampler: Literal["auto", "naive"] = Field(
        "auto",
        description="how tokens are chosen; naive keeps all scores and sorts them, for comparisons only",
    )
    max_model_len: Positive | None = Field(None, description="context in tokens (default: the model's own)")
    max_batch_size: Positive = Field(8, description="requests that run at once")
    max_queue: Annotated[int, Field(ge=0)] = Field(64, description="requests that may wait; more get 429")
    memory_utilization: Annotated[float, Field(gt=0, le=1)] = Field(
        0.92, description="share of the memory beside the weights that keys and values may take"
    )
    kv_cache_tokens: Positive | None = Field(
        None, description="tokens whose keys and values are held (default: by memory)"
    )
    default_intent: Intent = Field(
        Intent.BALANCED, description="intent of zero-layer requests that name none"
    )
    allowed_intents: Annotated[frozenset[Intent], NoDecode, BeforeValidator(_names)] = Field(
        frozenset(Intent), description="permitted intents, separated by commas"
    )
    api_key_dir: Path | None = Field(None, description="folder of files, each one accepted key")
    admin_key_file: Path | None = Field(None, description="file with the key that may drain from afar")
    revision: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{0,63}$")] = Field(
        "", description="the pool's revision, reported in headers"
    )
    anchor_path: Path | None = Field(None, description="knowledge anchor: a bundle file to apply at load")
    anchor_version: Annotated[str, StringConstraints(pattern=NAME_PATTERN)] | None = Field(
        None, description="version the bundle must have"
    )
    anchor_digest: Annotated[str, StringConstraints(pattern=DIGEST_PATTERN)] | None = Field(
        None, description="sha256:… the bundle's file must have"
    )
    lora_path: Path | None = Field(None, description="folder of a LoRA adapter (PEFT) to merge at load")
    skip_ska_lora: bool = Field(False, description="leave out what the adapter has for the anchor's norms")
    router_path: Path | None = Field(
        None, description="trained router's file, or none (default: router.safetensors of the model's folder)"
    )
    consistency_share: Annotated[float, Field(ge=0, le=1)] = Field(
        0.05, description="share of time in which deterministic requests are asked again; 0 for none"
    )
    warmup_prompt: str | None = Field(None, description="prompt of the warm-up requests")
    warmup_max_tokens: Positive = Field(16, description="tokens each warm-up request generates")
    warmup_timeout_seconds: Annotated[float, Field(gt=0)] = Field(
        600, description="warm-up gives up after this"
    )
    warmup_settle_ratio: Annotated[float, Field(gt=1)] = Field(
        1.5, description="warm-up ends once a round takes at most this multiple of the next"
    )
    drain_seconds: Annotated[float, Field(gt=0)] = Field(90, description="time for open answers to end")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="least level logged")
    builtin_dir: Path = Field(Path(DEFAULT_BUILTIN_DIR), description="folder of the built-in models")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.model_path is None) == (self.builtin is None):
            message = "give exactly one of --model-path DIR and --builtin NAME"
            raise ValueError(message)
        if self.default_intent not in self.allowed_intents:
            message = f"--default-intent {self.default_intent.value} must be one of --allowed-intents"
            raise ValueError(message)
        if self.anchor_path is None and (self.anchor_version or self.anchor_digest):
            message = "--anchor-version and --anchor-digest need --anchor-path FILE"
            raise ValueError(message)
        if self.skip_ska_lora and self.lora_path is None:
            message = "--skip-ska-lora needs --lora-path DIR"
            raise ValueError(message)
        if self.port == self.ops_port:
            message = "--port and --ops-port must differ"
            raise ValueError(message)
        return self

    @property
    def model_folder(self) -> Path:
        """Where the model is."""
        if self.model_path is not None:
            return self.model_path
        return self.builtin_dir / str(self.builtin)

    @property
    def served_name(self) -> str:
        """The id under which clients ask for the model."""
        return self.model_name or self.builtin or self.model_folder.resolve().name


def flag_of(field: str) -> str:
    """`max_queue` → `--max-queue`."""
    return "--" + field.replace("_", "-")


def describe() -> dict[str, str]:
    """Meaning and default of every field, for the command line's help."""
    texts: dict[str, str] = {}
    for name, field in WorkerConfig.model_fields.items():
        text = str(field.description).replace("%", "%%")
        shown = "" if field.default in (None, "") else f" ({_shown(field.default)})"
        texts[name] = text + shown
    return texts


def _shown(default: object) -> str:
    return ",".join(intent.value for intent in Intent) if isinstance(default, frozenset) else str(default)


def load_config(flags: Mapping[str, Any]) -> WorkerConfig:
    """Builds the configuration from given flags and, for the rest, the environment.

    Args:
        flags: values by field name, without those that were not given.

    Raises:
        ConfigError: names every flag at fault, where its value came from, and what would do.
    """
    try:
        config = WorkerConfig(**flags)
    except ValidationError as error:
        raise ConfigError("; ".join(_explain(flags, dict(each)) for each in error.errors())) from None
    _check_paths(config)
    return config


def _explain(flags: Mapping[str, Any], error: Mapping[str, Any]) -> str:
    if not error["loc"]:
        return str(error["msg"]).removeprefix("Value error, ")
    field = str(error["loc"][0])
    variable = ENV_PREFIX + field.upper()
    source = flag_of(field) if field in flags else f"{variable} (flag {flag_of(field)})"
    value = flags.get(field, os.environ.get(variable))
    return f"{source}: {error['msg']} (got {value!r})"


def _check_paths(config: WorkerConfig) -> None:
    """A missing folder is said before anything is started."""
    folder = config.model_folder
    if not (folder / "config.json").is_file():
        flag = "--model-path" if config.model_path is not None else "--builtin"
        remedy = (
            _builtins(config) if config.builtin else "point it at a folder with config.json and *.safetensors"
        )
        raise ConfigError(f"{flag}: {folder} holds no config.json; {remedy}")
    if config.api_key_dir is not None and not config.api_key_dir.is_dir():
        raise ConfigError(
            f"--api-key-dir: {config.api_key_dir} is not a folder; mount the keys' Secret there"
        )


def _builtins(config: WorkerConfig) -> str:
    folder = config.builtin_dir
    names = sorted(path.parent.name for path in folder.glob("*/config.json")) if folder.is_dir() else []
    return f"built-in models in {folder}: {', '.join(names) or 'none'}"

"""What an engine is started with."""

from dataclasses import dataclass
from pathlib import Path


class ContextLengthError(ValueError):
    """`max_model_len` is more than the model has."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Everything `load_engine` needs.

    Attributes:
        model_path: a Hugging Face folder with `config.json`, `tokenizer.json` and safetensors.
        served_name: the model's id in the API.
        device: `cpu` or `cuda`.
        dtype: `auto`, `float32` or `bfloat16`; auto takes bfloat16 where the hardware multiplies it.
        quantization: `none`, `int8` or `int4`: weights with fewer bits, on CPUs only.
        kernels: `auto`, `torch` or `native`: what the model runs through; auto is Triton's attention on GPUs,
            native on CPUs, each where it is possible.
        cuda_graphs: whether decode steps are captured as CUDA graphs; None does so on GPUs.
        sampler: `auto`, or `naive` for the path over kept logits that comparisons need.
        max_model_len: longest prompt plus answer in tokens; None takes the model's own maximum.
        max_batch_size: requests that run at once.
        max_queue: requests that may wait beyond those.
        threads: compute threads; None takes the CPUs this process may use. Fixed for the engine's life,
            as results depend on it.
        prefill_chunk: tokens of a prompt that run between two decode steps. Results depend on it.
        anchor_path: a bundle to apply to the model; None serves the model as it is.
        anchor_version: the version the bundle must have; None takes any.
        anchor_digest: the digest the bundle's file must have; None takes any.
        warmup: False leaves out the first step and the warm-up's requests, which shows what they are for.
        warmup_prompt: an additional text to warm up with.
        warmup_max_tokens: tokens generated per warm-up request.
        warmup_settle_ratio: warm-up ends when a round's median latency is at most this multiple of the
            next one's.
        warmup_timeout_s: the longest the warm-up may take, in seconds.
        lora_path: a folder with a LoRA adapter to merge into the model; None merges none.
        skip_ska_lora: leaves out what the adapter has for parameters of the anchor, which is refused else.
        router_path: a trained router's file; `none` for fixed parameters of each intent; None takes
            `router.safetensors` of the model's folder, where it is there.
        consistency_share: of time that may go into asking deterministic requests again; 0 for none.
        memory_utilization: share of the memory left beside weights and activations that keys and values may
            take.
        kv_cache_tokens: how many tokens' keys and values to hold; None goes by memory.
        seed: start of the sequence of seeds for requests that bring none; None starts anywhere.
    """

    model_path: Path
    served_name: str
    device: str = "cpu"
    dtype: str = "auto"
    quantization: str = "none"
    kernels: str = "auto"
    cuda_graphs: bool | None = None
    sampler: str = "auto"
    max_model_len: int | None = None
    max_batch_size: int = 8
    max_queue: int = 64
    threads: int | None = None
    prefill_chunk: int = 128
    anchor_path: Path | None = None
    anchor_version: str | None = None
    anchor_digest: str | None = None
    warmup: bool = True
    warmup_prompt: str | None = None
    warmup_max_tokens: int = 16
    warmup_settle_ratio: float = 1.5
    warmup_timeout_s: float = 600.0
    lora_path: Path | None = None
    skip_ska_lora: bool = False
    router_path: Path | None = None
    consistency_share: float = 0.05
    memory_utilization: float = 0.92
    kv_cache_tokens: int | None = None
    seed: int | None = None

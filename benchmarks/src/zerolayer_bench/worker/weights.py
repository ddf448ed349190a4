"""The demo's model at every precision, for every engine, from one set of values.

The source is the Q4_1 GGUF of the demo. Its values, expanded to fp32, are the model: the fp32 files hold
them as they are, the others are made of them. `int4` is the source itself: groups of 32 with scale and
minimum in all matrices but the embedding, which is also the head and is kept in Q8_0.
"""

import hashlib
import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gguf import (
    GGMLQuantizationType,
    GGUFReader,
    GGUFValueType,
    GGUFWriter,
    LlamaFileType,
    dequantize,
    quantize,
)

from zerolayer_dev.models.builtin import fetch_gguf
from zerolayer_worker.models.gguf import convert_gguf

_GGUF: Final = {
    "fp32": (GGMLQuantizationType.F32, LlamaFileType.ALL_F32),
    "bf16": (GGMLQuantizationType.BF16, LlamaFileType.MOSTLY_BF16),
    "int8": (GGMLQuantizationType.Q8_0, LlamaFileType.MOSTLY_Q8_0),
}
_SOURCE: Final = "int4.gguf"
_FOLDER: Final = "fp32"
# The writer sets these itself.
_WRITERS_OWN: Final = ("GGUF.", "general.architecture", "general.file_type", "general.quantization_version")


@dataclass(frozen=True, slots=True)
class Weights:
    """Where the files are.

    Attributes:
        folder: Hugging Face folder in fp32, without tokens that end an answer.
        gguf: a file for each precision.
    """

    folder: Path
    gguf: dict[str, Path]

    def weight_bytes(self, precision: str) -> int:
        """Bytes of all tensors, each of which a token of one sequence has to read once."""
        return sum(int(tensor.n_bytes) for tensor in GGUFReader(self.gguf[precision]).tensors)

    def digests(self) -> dict[str, str]:
        """SHA-256 of each file."""
        files = {f"{name}.gguf": path for name, path in self.gguf.items()}
        files["model.safetensors"] = self.folder / "model.safetensors"
        return {name: _digest(path) for name, path in sorted(files.items())}


def prepare(cache: Path) -> Weights:
    """Makes what is missing below `cache`; each file appears whole or not at all."""
    cache.mkdir(parents=True, exist_ok=True)
    source = cache / _SOURCE
    if not source.exists():
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            fetch_gguf(Path(scratch)).rename(source)
    for name, (kind, file_type) in _GGUF.items():
        if not (cache / f"{name}.gguf").exists():
            _requantise(source, cache / f"{name}.gguf", kind, file_type)
    folder = cache / _FOLDER
    if not folder.exists():
        _endless_folder(source, folder)
    return Weights(folder, {**{name: cache / f"{name}.gguf" for name in _GGUF}, "int4": source})


def _requantise(source: Path, target: Path, kind: GGMLQuantizationType, file_type: LlamaFileType) -> None:
    reader = GGUFReader(source)
    partial = target.with_suffix(".partial")
    writer = GGUFWriter(partial, "llama")
    for key, entry in reader.fields.items():
        if not key.startswith(_WRITERS_OWN):
            inner = entry.types[-1] if entry.types[0] == GGUFValueType.ARRAY else None
            writer.add_key_value(key, entry.contents(), entry.types[0], sub_type=inner)
    writer.add_file_type(file_type)
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type)
        if values.ndim == 1:
            writer.add_tensor(tensor.name, values)
        else:
            writer.add_tensor(tensor.name, quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    partial.rename(target)


def _endless_folder(source: Path, folder: Path) -> None:
    """Every engine makes as many tokens as asked: no token ends an answer."""
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    convert_gguf(source, partial, "float32")
    for name in ("config.json", "generation_config.json"):
        settings = json.loads((partial / name).read_text(encoding="utf-8"))
        settings.pop("eos_token_id", None)
        (partial / name).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    partial.rename(folder)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

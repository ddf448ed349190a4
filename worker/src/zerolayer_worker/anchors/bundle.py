"""Reads, writes and checks a bundle: one safetensors file of norm parameters."""

import hashlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import pydantic_core
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from zerolayer_worker.anchors.metadata import BundleMetadata
from zerolayer_worker.common.anchor import Anchor, BundleError, BundleReason
from zerolayer_worker.common.reading import TooLargeError, read_bounded
from zerolayer_worker.models.config import ModelConfig
from zerolayer_worker.models.weights import expected_shapes

MAX_BYTES: Final = 32 * 1024 * 1024
"""A larger file is no bundle: the largest model of this family (126 layers of 16 384) has 16.6 MB of gains
in fp32."""

_NORM_SUFFIX: Final = "norm.weight"
_LENGTH_BYTES: Final = 8
_DTYPES: Final = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle's values, by their names in the base model, and where they come from.

    Attributes:
        tensors: each one norm's gains, of type `metadata.dtype`.
        metadata: what the file says about itself.
        digest: `sha256:…` of the file, byte for byte.
        content: the file.
    """

    tensors: dict[str, Tensor]
    metadata: BundleMetadata
    digest: str
    content: bytes = field(repr=False)

    @property
    def size(self) -> int:
        """Of the file, in bytes."""
        return len(self.content)

    @property
    def anchor(self) -> Anchor:
        """Its identity."""
        return Anchor(self.metadata.version, self.digest)


def norm_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Every parameter a bundle may replace: input, post-attention and final norms, and q/k norms."""
    return {name: shape for name, shape in expected_shapes(config).items() if name.endswith(_NORM_SUFFIX)}


def read_bundle(path: Path) -> Bundle:
    """Reads a file once: what is hashed is what is used, even where a mounted file is replaced meanwhile.

    Raises:
        BundleError: `AnchorUnreadable`.
    """
    try:
        content = read_bounded(path, MAX_BYTES)
    except TooLargeError as error:
        raise _unreadable(path, f"{error}, so not norm parameters alone") from None
    except OSError as error:
        raise _unreadable(path, str(error.strerror or error)) from None
    try:
        return _parse(content)
    except BundleError as error:
        raise BundleError(BundleReason(error.reason), f"{path}: {error.message}") from None


def write_bundle(path: Path, tensors: Mapping[str, Tensor], metadata: BundleMetadata) -> Bundle:
    """Writes a bundle whole or not at all, and returns what `read_bundle` would.

    The same values and metadata give the same bytes. Values are rounded to `metadata.dtype`.

    Raises:
        BundleError: `AnchorNotFinite`, also for a value that is too large for the type; `AnchorUnreadable`
            where there are no tensors, or too many.
        OSError: the file can't be written.
    """
    dtype = _DTYPES[metadata.dtype]
    rounded = {name: tensor.detach().to("cpu", dtype).contiguous() for name, tensor in tensors.items()}
    for name, tensor in rounded.items():
        _check_finite(name, tensor)
    content = _canonical(save(rounded, metadata=metadata.texts()))
    if len(content) > MAX_BYTES:
        raise _unreadable(path, f"would be larger than {MAX_BYTES} bytes")
    bundle = _parse(content)
    handle, partial = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(content)
        Path(partial).chmod(0o644)
        Path(partial).replace(path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise
    return bundle


def check_identity(bundle: Bundle, *, version: str | None = None, digest: str | None = None) -> None:
    """Whether it is the bundle that was asked for; None asks for nothing.

    Raises:
        BundleError: `AnchorDigestMismatch` or `AnchorVersionMismatch`.
    """
    if digest is not None and bundle.digest != digest:
        raise BundleError(
            BundleReason.DIGEST_MISMATCH,
            f"the file's digest is {bundle.digest}, expected {digest}; the file was changed, or the "
            "digest is another bundle's",
        )
    if version is not None and bundle.metadata.version != version:
        raise BundleError(
            BundleReason.VERSION_MISMATCH,
            f"the bundle calls itself version {bundle.metadata.version}, expected {version}",
        )


def check_bundle(bundle: Bundle, model_config: ModelConfig, base_digest: str) -> None:
    """Whether it can be applied to a model; `base_digest` is that of the model's folder.

    Raises:
        BundleError: `AnchorForAnotherModel`, `AnchorUnknownTensor`, `AnchorWrongShape` or `AnchorNotFinite`.
    """
    if bundle.metadata.base_model_digest != base_digest:
        raise BundleError(
            BundleReason.FOR_ANOTHER_MODEL,
            f"made for the model {bundle.metadata.base_model_digest}, this one is {base_digest}; train it on "
            "this model",
        )
    shapes = norm_shapes(model_config)
    for name, tensor in bundle.tensors.items():
        if name not in shapes:
            raise BundleError(BundleReason.UNKNOWN_TENSOR, f"{name[:200]} is no norm parameter of this model")
        if tuple(tensor.shape) != shapes[name]:
            raise BundleError(
                BundleReason.WRONG_SHAPE,
                f"{name} has shape {list(tensor.shape)}, expected {list(shapes[name])}",
            )
        _check_finite(name, tensor)


def apply_bundle(bundle: Bundle, tensors: dict[str, Tensor]) -> None:
    """Replaces a checked bundle's parameters in a model's tensors, as their type and on their device.

    Raises:
        BundleError: `AnchorNotFinite` where a value is too large for the model's type.
    """
    for name, tensor in bundle.tensors.items():
        replaced = tensors[name]
        value = tensor.to(device=replaced.device, dtype=replaced.dtype)
        _check_finite(name, value)
        tensors[name] = value


def _parse(content: bytes) -> Bundle:
    tensors = _tensors(content)
    metadata = BundleMetadata.from_texts(_texts(content))
    if not tensors:
        raise BundleError(BundleReason.UNREADABLE, "the file holds no tensors")
    for name, tensor in tensors.items():
        if tensor.dtype != _DTYPES[metadata.dtype]:
            found = str(tensor.dtype).removeprefix("torch.")
            raise BundleError(
                BundleReason.UNREADABLE, f"{name[:200]} is {found}, the metadata says {metadata.dtype}"
            )
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    return Bundle(tensors, metadata, digest, content)


def _tensors(content: bytes) -> dict[str, Tensor]:
    try:
        return load(content)
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        # A type that torch has no counterpart for is a KeyError.
        cause = f"type {error} is not known" if isinstance(error, KeyError) else str(error)
        raise BundleError(BundleReason.UNREADABLE, f"not a safetensors file: {cause[:200]}") from None


def _header(content: bytes) -> dict[str, Any]:
    length = int.from_bytes(content[:_LENGTH_BYTES], "little")
    header: dict[str, Any] = pydantic_core.from_json(content[_LENGTH_BYTES : _LENGTH_BYTES + length])
    return header


def _texts(content: bytes) -> dict[str, str]:
    """The metadata; safetensors itself gives it out for files alone, and has checked its form by now."""
    return cast("dict[str, str]", _header(content).get("__metadata__") or {})


def _canonical(content: bytes) -> bytes:
    """The same file with its header's keys in order: safetensors writes the metadata's in a random one."""
    length = int.from_bytes(content[:_LENGTH_BYTES], "little")
    header = _header(content)
    ordered = {key: dict(sorted(value.items())) for key, value in sorted(header.items())}
    text = pydantic_core.to_json(ordered)
    text += b" " * (-len(text) % _LENGTH_BYTES)
    return len(text).to_bytes(_LENGTH_BYTES, "little") + text + content[_LENGTH_BYTES + length :]


def _check_finite(name: str, tensor: Tensor) -> None:
    wrong = tensor.numel() - int(torch.isfinite(tensor).sum())
    if wrong:
        dtype = str(tensor.dtype).removeprefix("torch.")
        raise BundleError(
            BundleReason.NOT_FINITE, f"{name}: {wrong} of {tensor.numel()} values are not finite in {dtype}"
        )


def _unreadable(path: Path, cause: str) -> BundleError:
    return BundleError(BundleReason.UNREADABLE, f"{path}: {cause}")

"""A bundle comes back as it was written, and whatever else a file may be has a reason to be refused."""

import contextlib
import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save

from zerolayer_dev.testing.tiny_anchor import ANY_DIGEST, make_tiny_bundle, random_gains, tiny_metadata
from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.anchors import bundle as module
from zerolayer_worker.anchors.bundle import (
    Bundle,
    apply_bundle,
    check_bundle,
    check_identity,
    norm_shapes,
    read_bundle,
    write_bundle,
)
from zerolayer_worker.common.anchor import Anchor, BundleError, BundleReason
from zerolayer_worker.models.config import read_config
from zerolayer_worker.models.digest import folder_digest

NORM = "model.layers.1.input_layernorm.weight"
HIDDEN = 64


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def content(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("bundle") / "a.safetensors"
    make_tiny_bundle(path, folder)
    return path.read_bytes()


def refused(path: Path, content: bytes) -> BundleError:
    path.write_bytes(content)
    with pytest.raises(BundleError) as caught:
        read_bundle(path)
    return caught.value


def changed(folder: Path, path: Path, **tensors: torch.Tensor | None) -> Bundle:
    """A bundle for the model in `folder` with one more tensor, or one fewer."""
    gains = random_gains(folder) | {name: t for name, t in tensors.items() if t is not None}
    return write_bundle(path, gains, tiny_metadata(folder_digest(folder)))


def test_comes_back_as_it_was_written(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    gains = random_gains(folder)
    written = write_bundle(path, gains, tiny_metadata())
    read = read_bundle(path)
    assert (read.metadata, read.digest, read.size) == (tiny_metadata(), written.digest, path.stat().st_size)
    assert read.tensors.keys() == gains.keys()
    assert all(torch.equal(read.tensors[name], gains[name].bfloat16()) for name in gains)
    assert read.anchor == Anchor("v1", read.digest)
    assert [file.name for file in tmp_path.iterdir()] == ["a.safetensors"]


def test_the_same_values_give_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    """The library alone writes its metadata in another order in every process."""
    path = tmp_path / "a.safetensors"
    write_bundle(path, random_gains(folder), tiny_metadata())
    length = int.from_bytes(path.read_bytes()[:8], "little")
    header = json.loads(path.read_bytes()[8 : 8 + length])
    assert list(header) == sorted(header)
    assert list(header["__metadata__"]) == sorted(header["__metadata__"])
    assert length % 8 == 0


@pytest.mark.parametrize(
    ("overrides", "names"),
    [
        ({}, {"input_layernorm", "post_attention_layernorm", "norm"}),
        (
            {"architectures": ["Qwen3ForCausalLM"], "head_dim": 16},
            {"input_layernorm", "post_attention_layernorm", "norm", "q_norm", "k_norm"},
        ),
    ],
)
def test_norm_parameters(tmp_path: Path, overrides: dict[str, object], names: set[str]) -> None:
    config = read_config(make_tiny_model(tmp_path, **overrides))
    assert {name.split(".")[-2] for name in norm_shapes(config)} == names
    assert len(norm_shapes(config)) == 1 + config.layers * (len(names) - 1)


def test_a_checked_bundle_replaces_norms_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    bundle = make_tiny_bundle(tmp_path / "a", folder)
    check_bundle(bundle, read_config(folder), folder_digest(folder))
    tensors = {name: torch.zeros(shape) for name, shape in norm_shapes(read_config(folder)).items()}
    tensors["lm_head.weight"] = torch.zeros(3)
    apply_bundle(bundle, tensors)
    assert torch.equal(tensors[NORM], bundle.tensors[NORM].float())
    assert tensors[NORM].dtype == torch.float32
    assert not tensors["lm_head.weight"].any()


def test_some_norms_are_enough(folder: Path, tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "a", {NORM: torch.ones(HIDDEN)}, tiny_metadata(folder_digest(folder)))
    check_bundle(bundle, read_config(folder), folder_digest(folder))


@pytest.mark.parametrize(
    ("tensors", "reason", "message"),
    [
        ({"model.extra": torch.ones(2)}, BundleReason.UNKNOWN_TENSOR, "model.extra is no norm parameter"),
        (
            {"model.layers.0.mlp.down_proj.weight": torch.ones(HIDDEN, 96)},
            BundleReason.UNKNOWN_TENSOR,
            "down_proj.weight is no norm parameter",
        ),
        (
            {"model.layers.2.input_layernorm.weight": torch.ones(HIDDEN)},
            BundleReason.UNKNOWN_TENSOR,
            "no norm",
        ),
        ({NORM: torch.ones(63)}, BundleReason.WRONG_SHAPE, r"has shape \[63\], expected \[64\]"),
        ({NORM: torch.ones(1, HIDDEN)}, BundleReason.WRONG_SHAPE, r"has shape \[1, 64\]"),
        ({NORM: torch.ones(())}, BundleReason.WRONG_SHAPE, r"has shape \[\]"),
        ({NORM: torch.ones(0)}, BundleReason.WRONG_SHAPE, r"has shape \[0\]"),
    ],
)
def test_what_does_not_fit_the_model(
    folder: Path, tmp_path: Path, tensors: dict[str, torch.Tensor], reason: BundleReason, message: str
) -> None:
    bundle = changed(folder, tmp_path / "a", **tensors)
    with pytest.raises(BundleError, match=message) as caught:
        check_bundle(bundle, read_config(folder), folder_digest(folder))
    assert caught.value.reason is reason
    assert str(caught.value).startswith(f"{reason.value}: ")


def test_another_model(folder: Path, tmp_path: Path) -> None:
    other = make_tiny_model(tmp_path / "other", seed=1)
    bundle = make_tiny_bundle(tmp_path / "a", other)
    with pytest.raises(BundleError, match="made for the model sha256:") as caught:
        check_bundle(bundle, read_config(folder), folder_digest(folder))
    assert caught.value.reason is BundleReason.FOR_ANOTHER_MODEL


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_values_that_are_not_finite(folder: Path, tmp_path: Path, value: float) -> None:
    """Neither written, nor taken from a file that another program wrote."""
    gains = random_gains(folder)
    gains[NORM][5] = value
    with pytest.raises(BundleError, match=rf"{NORM}: 1 of 64 values are not finite") as caught:
        write_bundle(tmp_path / "a", gains, tiny_metadata())
    assert caught.value.reason is BundleReason.NOT_FINITE
    assert not (tmp_path / "a").exists()
    metadata = tiny_metadata(folder_digest(folder), dtype="float32")
    (tmp_path / "b").write_bytes(save(gains, metadata.texts()))
    with pytest.raises(BundleError) as caught:
        check_bundle(read_bundle(tmp_path / "b"), read_config(folder), folder_digest(folder))
    assert caught.value.reason is BundleReason.NOT_FINITE


def test_values_too_large_for_the_type(folder: Path, tmp_path: Path) -> None:
    gains = {NORM: torch.full((HIDDEN,), 1e30)}
    with pytest.raises(BundleError, match="not finite in float16"):
        write_bundle(tmp_path / "a", gains, tiny_metadata(dtype="float16"))
    bundle = write_bundle(tmp_path / "a", gains, tiny_metadata(dtype="float32"))
    with pytest.raises(BundleError, match="not finite in float16"):
        apply_bundle(bundle, {NORM: torch.ones(HIDDEN, dtype=torch.float16)})


@pytest.mark.parametrize(
    ("expected", "reason"),
    [
        (Anchor("v1", ANY_DIGEST), BundleReason.DIGEST_MISMATCH),
        (Anchor("v2", ANY_DIGEST), BundleReason.DIGEST_MISMATCH),
        (Anchor("v2", ""), BundleReason.VERSION_MISMATCH),
    ],
)
def test_another_bundle_than_was_asked_for(
    folder: Path, tmp_path: Path, expected: Anchor, reason: BundleReason
) -> None:
    bundle = make_tiny_bundle(tmp_path / "a", folder)
    check_identity(bundle)
    check_identity(bundle, version="v1", digest=bundle.digest)
    with pytest.raises(BundleError) as caught:
        check_identity(bundle, version=expected.version, digest=expected.digest or bundle.digest)
    assert caught.value.reason is reason


def _retyped(content: bytes) -> bytes:
    """The same bytes under a header that calls them another type."""
    return content.replace(b'"dtype":"BF16"', b'"dtype":"I16" ')


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _: b"", "not a safetensors file"),
        (lambda _: b"\xff" * 64, "not a safetensors file"),
        (lambda _: struct.pack("<Q", 2) + b"{}", "no anchor bundle"),
        (lambda _: save({NORM: torch.ones(HIDDEN)}), "no anchor bundle"),
        (lambda _: save({}, tiny_metadata().texts()), "holds no tensors"),
        (lambda content: content[:-1], "not a safetensors file"),
        (lambda content: content + b"\0", "not a safetensors file"),
        (lambda content: content.replace(b'format":"1"', b'format":"2"'), "format '2'"),
        (lambda content: content.replace(b'"v1"', b'"v\\"'), "not a safetensors file"),
        (lambda content: content.replace(b'"v1"', b'" 1"'), "metadata: version"),
        (lambda content: content.replace(b"bfloat16", b"float16 "), "metadata: dtype"),
        (
            lambda content: content.replace(b'"bfloat16"', b'"float16" '),
            "is bfloat16, the metadata says float16",
        ),
        (_retyped, "is int16, the metadata says bfloat16"),
        (lambda _: b"\0" * (module.MAX_BYTES + 1), "larger than"),
    ],
)
def test_files_that_are_no_bundle(
    content: bytes, tmp_path: Path, make: Callable[[bytes], bytes], message: str
) -> None:
    error = refused(tmp_path / "a", make(content))
    assert error.reason is BundleReason.UNREADABLE
    assert error.message.startswith(f"{tmp_path / 'a'}: ")
    assert message in error.message


def test_no_file(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(BundleError) as caught:
            read_bundle(path)
        assert caught.value.reason is BundleReason.UNREADABLE


@given(data=st.data())
def test_no_damage_makes_anything_but_a_refusal(
    content: bytes, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """A changed byte is another digest or a refusal, never another kind of error."""
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del damaged[data.draw(st.integers(0, len(damaged))) or len(damaged) :]
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(damaged)
    bundle = None
    with contextlib.suppress(BundleError):
        bundle = read_bundle(path)
    if bundle is not None:
        path.write_bytes(content)
        assert (bytes(damaged) == content) == (bundle.digest == read_bundle(path).digest)


@given(junk=st.binary(max_size=200))
def test_any_bytes_are_refused(tmp_path_factory: pytest.TempPathFactory, junk: bytes) -> None:
    header = struct.pack("<Q", len(junk)) + junk
    for content in (junk, header):
        assert refused(tmp_path_factory.getbasetemp() / "junk", content).reason is BundleReason.UNREADABLE

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.routing.training import MAX_FEATURES
from zerolayer_worker.sampling.router_file import (
    MAX_BYTES,
    RouterError,
    RouterMetadata,
    check_model,
    ranges,
    read_router,
    write_router,
)

DIGEST = "sha256:" + "a" * 64


def metadata(**changes: Any) -> RouterMetadata:
    values: dict[str, Any] = {
        "model_digest": DIGEST,
        "hidden_size": 8,
        "features": 8,
        "bias": 1.5,
        "theta": {Intent.BALANCED: 2.0, Intent.CREATIVE: 3.0},
        "ranges": ranges(),
        "r2": 0.5,
        "tokens": 1000,
    }
    return RouterMetadata(**values | changes)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    weights = torch.linspace(-1, 1, 8), torch.linspace(0, 1, 8)
    written = write_router(tmp_path / "r", *weights, metadata())
    found = read_router(tmp_path / "r")
    assert found.metadata == metadata()
    assert torch.equal(found.hidden, weights[0].half())
    assert torch.equal(found.embedding, weights[1].half())
    assert (found.digest, found.size) == (written.digest, (tmp_path / "r").stat().st_size)
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_the_same_values_make_the_same_file(tmp_path: Path) -> None:
    digests = {
        write_router(tmp_path / str(n), torch.ones(8), torch.ones(8), metadata()).digest for n in range(9)
    }
    assert len(digests) == 1


def test_the_largest_router_fits(tmp_path: Path) -> None:
    """Of as many features as are ever trained."""
    many = metadata(features=MAX_FEATURES, hidden_size=2 * MAX_FEATURES)
    written = write_router(tmp_path / "r", torch.ones(MAX_FEATURES), torch.ones(MAX_FEATURES), many)
    assert written.size <= MAX_BYTES


def file_of(path: Path, tensors: dict[str, torch.Tensor] | None = None, **texts: Any) -> Path:
    """Any safetensors file; `texts` replace the metadata's, None leaves one out."""
    values = metadata().model_dump(mode="json") | texts
    plain = {key: json.dumps(value) for key, value in values.items() if value is not None}
    given = tensors or {"hidden": torch.ones(8).half(), "embedding": torch.ones(8).half()}
    save_file(given, path, metadata=plain)
    return path


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"format": "2"}, "RouterUnreadable: .*metadata: format: "),
        ({"format": None, "bias": None}, "metadata: bias: Field required"),
        ({"model_digest": "abc"}, "metadata: model_digest"),
        ({"theta": {"balanced": 1.0}}, "made for other ranges"),
        ({"theta": {"balanced": 0.0, "creative": 1.0}}, r"metadata: theta\.balanced"),
        ({"ranges": {"creative": {"temperature": [0, 9], "min_p": [0, 0]}}}, "made for other ranges"),
        ({"surplus": 1}, "metadata: surplus"),
        ({"features": 9}, r"holds .*, expected hidden and embedding"),
    ],
)
def test_metadata_that_does_not_fit_is_refused(tmp_path: Path, texts: dict[str, Any], message: str) -> None:
    with pytest.raises(RouterError, match=message):
        read_router(file_of(tmp_path / "r", **texts))


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"hidden": torch.ones(8).half()}, "expected hidden and embedding"),
        ({"hidden": torch.ones(8), "embedding": torch.ones(8)}, "expected hidden and embedding"),
        (
            {"hidden": torch.full((8,), float("nan")).half(), "embedding": torch.ones(8).half()},
            "RouterNotFinite: .*hidden holds",
        ),
    ],
)
def test_so_are_tensors(tmp_path: Path, tensors: dict[str, torch.Tensor], message: str) -> None:
    with pytest.raises(RouterError, match=message):
        read_router(file_of(tmp_path / "r", tensors))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a router's safetensors file"),
        (b"x" * 100, "not a router's safetensors file"),
        (b"x" * (MAX_BYTES + 1), f"larger than {MAX_BYTES} bytes"),
    ],
)
def test_so_is_what_is_no_router(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "r").write_bytes(content)
    with pytest.raises(RouterError, match=message):
        read_router(tmp_path / "r")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RouterError, match="No such file"):
        read_router(tmp_path / "r")


def test_a_weight_too_large_for_its_type_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(RouterError, match="RouterNotFinite"):
        write_router(tmp_path / "r", torch.full((8,), 1e9), torch.ones(8), metadata())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("digest", "size"), [("sha256:" + "b" * 64, 8), (DIGEST, 9)])
def test_a_router_of_another_model_is_refused(tmp_path: Path, digest: str, size: int) -> None:
    file = write_router(tmp_path / "r", torch.ones(8), torch.ones(8), metadata())
    check_model(file, tmp_path / "r", DIGEST, 8)
    with pytest.raises(RouterError, match=r"RouterForAnotherModel: .*router train"):
        check_model(file, tmp_path / "r", digest, size)

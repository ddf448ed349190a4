import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from zerolayer_dev.testing.tiny_model import TINY, tiny_tensors
from zerolayer_worker.models.config import read_config
from zerolayer_worker.models.folder import ModelFolderError
from zerolayer_worker.models.weights import INDEX_NAME, load_tensors

NORM = "model.layers.1.input_layernorm.weight"
Tensors = dict[str, torch.Tensor]


@pytest.fixture
def tensors(tmp_path: Path) -> Tensors:
    return tiny_tensors(TINY, tmp_path)


def load(folder: Path, dtype: torch.dtype = torch.float32) -> Tensors:
    return load_tensors(folder, read_config(folder), dtype, torch.device("cpu"))


def shard(folder: Path, tensors: Tensors, parts: int = 3) -> None:
    names, index = sorted(tensors), {}
    for part in range(parts):
        file = f"model-{part}.safetensors"
        held = names[part::parts]
        save_file({name: tensors[name] for name in held}, folder / file)
        index |= dict.fromkeys(held, file)
    (folder / INDEX_NAME).write_text(json.dumps({"weight_map": index}))


def test_loads_a_single_file(tmp_path: Path, tensors: Tensors) -> None:
    save_file(tensors, tmp_path / "model.safetensors")
    loaded = load(tmp_path)
    assert loaded.keys() == tensors.keys()
    assert all(torch.equal(loaded[name], tensors[name]) for name in tensors)


def test_loads_shards(tmp_path: Path, tensors: Tensors) -> None:
    shard(tmp_path, tensors)
    assert all(torch.equal(tensor, tensors[name]) for name, tensor in load(tmp_path).items())


def test_converts(tmp_path: Path, tensors: Tensors) -> None:
    save_file(tensors, tmp_path / "model.safetensors")
    assert {tensor.dtype for tensor in load(tmp_path, torch.bfloat16).values()} == {torch.bfloat16}


def test_ignores_what_is_computed_here(tmp_path: Path, tensors: Tensors) -> None:
    extra = {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(8)}
    save_file(tensors | extra, tmp_path / "model.safetensors")
    assert load(tmp_path).keys() == tensors.keys()


def test_ignores_a_stored_copy_of_a_tied_head(tmp_path: Path) -> None:
    tensors = tiny_tensors(TINY | {"tie_word_embeddings": True}, tmp_path)
    save_file(tensors | {"lm_head.weight": torch.zeros(259, 64)}, tmp_path / "model.safetensors")
    assert "lm_head.weight" not in load(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({NORM: None}, rf"tensor {NORM} is missing \(1 in all\) from model\.safetensors"),
        ({"model.extra": torch.ones(2)}, r"model\.safetensors: tensor model\.extra is unknown"),
        ({NORM: torch.ones(63)}, rf"model\.safetensors: tensor {NORM} has shape \[63\], expected \[64\]"),
        ({NORM: torch.ones(64, dtype=torch.int8)}, rf"tensor {NORM} is torch\.int8"),
    ],
)
def test_names_tensor_and_file(
    tmp_path: Path, tensors: Tensors, change: dict[str, torch.Tensor | None], message: str
) -> None:
    changed = {name: tensor for name, tensor in (tensors | change).items() if tensor is not None}
    save_file(changed, tmp_path / "model.safetensors")
    with pytest.raises(ModelFolderError, match=message):
        load(tmp_path)


def test_names_a_file_that_is_none(tmp_path: Path, tensors: Tensors) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"\x00" * 64)
    with pytest.raises(ModelFolderError, match=r"model\.safetensors: not a readable safetensors file"):
        load(tmp_path)


def test_names_a_folder_without_weights(tmp_path: Path, tensors: Tensors) -> None:
    with pytest.raises(ModelFolderError, match=r"neither model\.safetensors nor"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ("{", r"index\.json: not valid JSON"),
        ("{}", r"index\.json: weight_map is missing"),
        ('{"weight_map": []}', r"index\.json: weight_map: "),
        ('{"weight_map": {"a": 5}}', r"index\.json: weight_map\.a: "),
        ('{"weight_map": {"a": "gone.safetensors"}}', r"names gone\.safetensors"),
        ('{"weight_map": {"a": "../model.safetensors"}}', r"names model\.safetensors"),
    ],
)
def test_names_a_broken_index(tmp_path: Path, tensors: Tensors, index: str, message: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(TINY))
    save_file(tensors, tmp_path / "model.safetensors")
    (folder / INDEX_NAME).write_text(index)
    with pytest.raises(ModelFolderError, match=message):
        load(folder)

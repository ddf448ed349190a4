from pathlib import Path

import pytest
import torch

from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.anchors.lessons import Lesson
from zerolayer_worker.models.dense import DenseModel, load_dense
from zerolayer_worker.models.tokenizer import ModelTokenizer
from zerolayer_worker.routing.material import WINDOW, MaterialError, observe, of_files


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def model(folder: Path) -> DenseModel:
    return load_dense(folder)


def test_each_row_is_a_state_its_token_and_the_entropy_after_it(model: DenseModel) -> None:
    texts = [Lesson((5, 6, 7, 8), 1), Lesson((9, 10, 11, 12, 13), 3)]
    found = observe(model, texts)
    # The rows before the first token that counts predict what is not the text's own.
    tokens = [5, 6, 7, 8, 11, 12, 13]
    assert len(found) == len(tokens)
    assert torch.equal(found.embedding, model.tensors["model.embed_tokens.weight"][tokens])
    alone = observe(model, [Lesson((9, 10, 11), 1)])
    torch.testing.assert_close(found.hidden[4], alone.hidden[2])
    probabilities = model.logprobs(found.hidden).exp().double()
    expected = torch.distributions.Categorical(probs=probabilities).entropy()
    torch.testing.assert_close(found.entropy.double(), expected, rtol=1e-4, atol=1e-4)


def test_windows_are_spread_over_the_texts(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a" * WINDOW * 3)
    (tmp_path / "b").write_text("b" * WINDOW * 5)
    found = of_files([tmp_path / "a", tmp_path / "b"], ModelTokenizer(folder), 4)
    assert len(found) == 4
    assert all(len(text.ids) == WINDOW and text.start == 1 for text in found)
    assert len({text.ids for text in found}) == 2


def test_texts_that_are_too_short_are_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a" * (WINDOW - 1))
    with pytest.raises(MaterialError, match=f"a: less than {WINDOW} tokens"):
        of_files([tmp_path / "a"], ModelTokenizer(folder), 4)

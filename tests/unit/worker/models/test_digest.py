import shutil
from pathlib import Path

import pytest

from zerolayer_dev.testing.tiny_model import make_tiny_model
from zerolayer_worker.models.digest import folder_digest


def test_names_the_content_not_the_place(tmp_path: Path) -> None:
    folder = make_tiny_model(tmp_path / "a")
    digest = folder_digest(folder)
    (folder / "README.md").write_text("no part of the model")
    assert digest.startswith("sha256:")
    assert len(digest) == len("sha256:") + 64
    assert folder_digest(shutil.copytree(folder, tmp_path / "b")) == digest


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json"])
def test_a_changed_file_changes_it(tmp_path: Path, name: str) -> None:
    folder = make_tiny_model(tmp_path)
    before = folder_digest(folder)
    with (folder / name).open("a") as opened:
        opened.write(" ")
    assert folder_digest(folder) != before


def test_changed_weights_change_it(tmp_path: Path) -> None:
    first = folder_digest(make_tiny_model(tmp_path / "a"))
    assert folder_digest(make_tiny_model(tmp_path / "b", seed=1)) != first

import os
from pathlib import Path

import pytest

from zerolayer_dev.images.inputs import Inputs, select


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in {
        "Dockerfile": "FROM scratch",
        "src/a/one.py": "1",
        "src/a/__pycache__/one.pyc": "x",
        "other.txt": "no part of it",
    }.items():
        path = tmp_path / "context" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path / "context"


def inputs(folder: Path) -> Inputs:
    return Inputs({"": select(folder, ("Dockerfile", "src/**/*"))})


def test_only_named_files_are_selected_and_nothing_that_python_left_behind(folder: Path) -> None:
    assert set(select(folder, ("Dockerfile", "src/**/*"))) == {"Dockerfile", "src/a/one.py"}


def test_a_pattern_that_fits_nothing_is_an_error(folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"requirements\.lock"):
        select(folder, ("requirements.lock",))


def test_the_digest_is_the_same_for_the_same_content_wherever_and_whenever(
    folder: Path, tmp_path: Path
) -> None:
    before = inputs(folder).digest()
    os.utime(folder / "Dockerfile", (1, 1))
    folder.rename(tmp_path / "elsewhere")

    assert inputs(tmp_path / "elsewhere").digest() == before
    assert len(before) == 16


def test_the_digest_changes_with_content_name_mode_context_and_what_else_counts(folder: Path) -> None:
    digests = [inputs(folder).digest(), inputs(folder).digest("base-2")]
    (folder / "src/a/one.py").write_text("2")
    digests.append(inputs(folder).digest())
    (folder / "src/a/one.py").chmod(0o755)
    digests.append(inputs(folder).digest())
    (folder / "src/a/one.py").rename(folder / "src/a/two.py")
    digests.append(inputs(folder).digest())
    digests.append(Inputs({"": {}, "models": inputs(folder).contexts[""]}).digest())

    assert len(set(digests)) == len(digests)


def test_a_heavy_stage_does_not_change_with_the_files_it_does_not_read(folder: Path) -> None:
    before = inputs(folder).without("src/*").digest()
    (folder / "src/a/one.py").write_text("2")
    assert inputs(folder).without("src/*").digest() == before
    (folder / "Dockerfile").write_text("FROM other")
    assert inputs(folder).without("src/*").digest() != before


def test_contexts_are_laid_out_with_the_same_times_and_modes_each_time(folder: Path, tmp_path: Path) -> None:
    (folder / "src/a/one.py").chmod(0o700)
    (folder / "Dockerfile").chmod(0o600)
    whole = Inputs({**inputs(folder).contexts, "models": {"m/weights": folder / "other.txt"}})

    contexts = whole.lay_out(tmp_path / "out")

    assert contexts == {"": tmp_path / "out/main", "models": tmp_path / "out/models"}
    assert (contexts["models"] / "m/weights").read_text() == "no part of it"
    assert (contexts[""] / "src/a/one.py").stat().st_mode & 0o777 == 0o755
    assert (contexts[""] / "Dockerfile").stat().st_mode & 0o777 == 0o644
    times = {path.stat().st_mtime for path in (tmp_path / "out").rglob("*")}
    assert len(times) == 1

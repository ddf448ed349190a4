"""The termination message: written where the kubelet put a file, nowhere else."""

from pathlib import Path

from zerolayer_worker.common.termination import leave_message


def test_the_message_replaces_what_the_file_held(tmp_path: Path) -> None:
    path = tmp_path / "termination-log"
    path.write_text("earlier and longer")
    leave_message("no weights: ö", path)
    assert path.read_text(encoding="utf-8") == "no weights: ö\n"


def test_no_file_is_made(tmp_path: Path) -> None:
    leave_message("x", tmp_path / "missing")
    assert not (tmp_path / "missing").exists()


def test_a_file_that_cannot_be_written_is_no_fault(tmp_path: Path) -> None:
    leave_message("x", tmp_path)
    assert tmp_path.is_dir()

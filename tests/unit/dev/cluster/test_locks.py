import subprocess
import sys
from pathlib import Path

from zerolayer_dev.cluster.locks import held, try_hold

TRY = """
import sys
from pathlib import Path
from zerolayer_dev.cluster.locks import try_hold
sys.exit(0 if try_hold(Path(sys.argv[1])) is not None else 1)
"""


def free(path: Path) -> bool:
    """Whether another process can take the lock."""
    return subprocess.run([sys.executable, "-c", TRY, str(path)], check=False).returncode == 0


def test_a_held_lock_keeps_other_processes_out_until_it_is_freed(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "lock"
    with held(path):
        assert not free(path)
    assert free(path)


def test_trying_does_not_wait(tmp_path: Path) -> None:
    with held(tmp_path / "lock"):
        assert try_hold(tmp_path / "lock") is None

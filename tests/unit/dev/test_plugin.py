"""The plugin as one file."""

import subprocess
import sys
from pathlib import Path

from zerolayer_dev import plugin


def test_the_file_is_a_program_that_needs_nothing_but_python(tmp_path: Path) -> None:
    program = plugin.write(tmp_path / "bin")

    said = subprocess.run(
        [program, "--help"],
        env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert program.name == "kubectl-zerolayer"
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("usage: kubectl zerolayer ")

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from zerolayer_dev.cli import TOOLS, build_app


def test_help_names_every_tool_without_loading_one() -> None:
    result = CliRunner().invoke(build_app(["--help"]), ["--help"])
    assert result.exit_code == 0
    assert all(name in result.output for name in TOOLS)


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_can_be_loaded(tool: str) -> None:
    result = CliRunner().invoke(build_app([tool, "--help"]), [tool, "--help"])
    assert result.exit_code == 0


def test_the_cluster_loads_neither_images_nor_torch() -> None:
    program = (
        "import sys; from zerolayer_dev.cli import build_app; build_app(['cluster']);"
        "print({'torch', 'zerolayer_dev.images', 'zerolayer_dev.demo'} & set(sys.modules) or None)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "None"

"""What `anchor pack` prints is what a real API server and kubectl accept, also where a size decides."""

import shlex
from pathlib import Path

import pytest

from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_worker.commands.anchor_pack import MAX_CONFIG_MAP_BYTES, apply_command, manifest_of

_LARGEST_BY_CLIENT = 195_600


@pytest.mark.parametrize(
    ("size", "by_server"),
    [(_LARGEST_BY_CLIENT, False), (_LARGEST_BY_CLIENT + 400, True), (MAX_CONFIG_MAP_BYTES, True)],
)
def test_the_printed_command_works(
    api: LocalCluster, namespace: str, tmp_path: Path, size: int, by_server: bool
) -> None:
    manifest = manifest_of("facts", namespace, b"\xff" * size)
    path = tmp_path / "facts.yaml"
    path.write_text(manifest)
    program, *arguments = shlex.split(apply_command(manifest, str(path)))
    assert program == "kubectl"
    assert ("--server-side" in arguments) is by_server
    api.kubectl(*arguments)
    stored = api.kubectl(
        "get", "configmap", "facts", "--namespace", namespace, "--output=jsonpath={.binaryData}"
    )
    assert len(stored) > size


def test_one_byte_more_than_fits_is_refused(api: LocalCluster, namespace: str, tmp_path: Path) -> None:
    path = tmp_path / "facts.yaml"
    path.write_text(manifest_of("facts", namespace, b"\xff" * (MAX_CONFIG_MAP_BYTES + 1)))
    with pytest.raises(Exception, match="may not be more than 1048576 bytes"):
        api.kubectl("apply", "--server-side", "-f", str(path))

from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError

from zerolayer_dev.testing.hub import COMMIT, Repository, serve


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(bytes(range(256)) * 5000)
    with serve(Repository("org/model", folder, "secret"), "127.0.0.1") as url:
        yield url


def test_official_client_downloads_every_file(hub: str, tmp_path: Path) -> None:
    target = tmp_path / "target"
    snapshot_download("org/model", revision=COMMIT, local_dir=target, endpoint=hub, token="secret")

    assert (target / "config.json").read_text() == "{}"
    assert (target / "model.safetensors").read_bytes() == bytes(range(256)) * 5000


def test_wrong_token_is_refused(hub: str, tmp_path: Path) -> None:
    with pytest.raises(HfHubHTTPError):
        snapshot_download("org/model", revision=COMMIT, local_dir=tmp_path / "x", endpoint=hub, token="wrong")

from pathlib import Path

import pytest

from zerolayer_dev.cluster.sockets import connect, listen


def test_a_socket_works_under_a_path_longer_than_an_address(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    with listen(folder / "control.sock") as server, connect(folder / "control.sock", 5) as client:
        accepted, _ = server.accept()
        with accepted:
            client.sendall(b"hello")
            assert accepted.recv(5) == b"hello"


def test_a_left_over_socket_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    listen(path).close()
    with listen(path), connect(path, 5):
        assert path.is_socket()


def test_connecting_to_nobody_fails(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        connect(tmp_path / "none.sock", 1)

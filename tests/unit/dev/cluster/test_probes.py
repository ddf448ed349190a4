import socket
from pathlib import Path

from zerolayer_dev.cluster.plan import Probe
from zerolayer_dev.cluster.probes import is_ready
from zerolayer_dev.cluster.sockets import listen


def test_no_probe_is_ready() -> None:
    assert is_ready(None)


def test_a_port_is_ready_while_something_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        probe = Probe("tcp", f"127.0.0.1:{server.getsockname()[1]}")
        assert is_ready(probe)
    assert not is_ready(probe)


def test_a_unix_socket_is_ready_while_something_listens(tmp_path: Path) -> None:
    path = tmp_path / "x.sock"
    assert not is_ready(Probe("socket", str(path)))
    with listen(path):
        assert is_ready(Probe("socket", str(path)))
    assert not is_ready(Probe("socket", str(path)))


def test_nothing_at_an_url_is_not_ready() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert not is_ready(
        Probe("https", f"https://127.0.0.1:{port}/readyz", "/etc/ssl/certs/ca-certificates.crt")
    )


def test_a_task_is_never_ready_by_probing() -> None:
    assert not is_ready(Probe("exit"))

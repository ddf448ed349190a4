"""A Kubernetes of our own on this machine: one process, namespaces of its own, nothing left behind."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from zerolayer_dev.cluster import binaries, control_plane, host, node, pki, prerequisites
from zerolayer_dev.cluster.api import ClusterError
from zerolayer_dev.cluster.clients import Clients
from zerolayer_dev.cluster.commands import output
from zerolayer_dev.cluster.control import Control
from zerolayer_dev.cluster.images import archived_images, free_store, parse_image_list
from zerolayer_dev.cluster.layout import SLOTS, Addresses, Size, State, clusters_dir, interface_name
from zerolayer_dev.cluster.locks import held
from zerolayer_dev.cluster.plan import Plan
from zerolayer_dev.cluster.record import Record, folders, free_slot
from zerolayer_dev.cluster.supervisor import log_tail
from zerolayer_dev.paths import cache_dir

_START_TIMEOUT_S = 120.0
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class LocalCluster:
    """A running local cluster.

    Bridge-less CNI plugins connect its pods and enforce no NetworkPolicy: policies
    are accepted and stored, as on any cluster without a policy engine.

    Args:
        record: of the running cluster.
    """

    def __init__(self, record: Record) -> None:
        self.record = record
        self.state = record.state
        self.addresses: Addresses = record.addresses
        self.control = Control(self.state.control)

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.record.name

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of the administrator."""
        return self.state.kubeconfig

    @property
    def audit_log(self) -> Path:
        """Audit log: who did what, with user agent, at level Metadata."""
        return self.state.audit_log

    @cached_property
    def clients(self) -> Clients:
        """kubectl and helm for this cluster."""
        return Clients(self.kubeconfig)

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout_s: float = 120) -> str:
        """Run kubectl; see `Cluster.kubectl`."""
        return self.clients.kubectl(*arguments, stdin=stdin, timeout_s=timeout_s)

    def helm(self, *arguments: str, stdin: str | None = None, timeout_s: float = 300) -> str:
        """Run helm; see `Cluster.helm`."""
        return self.clients.helm(*arguments, stdin=stdin, timeout_s=timeout_s)

    def exec_in_node(self, command: Sequence[str], timeout_s: float = 60) -> str:
        """Run a command in the cluster's namespaces; see `Cluster.exec_in_node`."""
        entered = ["nsenter", f"--target={self.record.init.pid}", "--net", "--pid", "--mount", "--uts", "--ipc"]
        return output([*entered, "--", *command], timeout_s=timeout_s)

    def load_image(self, archive: Path) -> bool:
        """Import what the node lacks of an OCI archive; see `Cluster.load_image`."""
        present = parse_image_list(self._ctr("images", "list"))
        lacking = [image for image in archived_images(archive) if present.get(image.name) != image.digest]
        for image in lacking:
            self._ctr(
                "images", "import", "--local", f"--base-name={image.repository}", str(archive.resolve()),
                timeout_s=900,
            )  # fmt: skip
        return bool(lacking)

    def stop_apiserver(self) -> None:
        """Kill the API server and keep it away until `start_apiserver`."""
        self.control.stop("kube-apiserver")

    def start_apiserver(self) -> None:
        """Start the stopped API server and wait until it is ready."""
        self.control.start("kube-apiserver")

    def pause(self, component: str) -> None:
        """Freeze a component, as a machine that hangs does."""
        self.control.signal(component, signal.SIGSTOP)

    def resume(self, component: str) -> None:
        """Let a frozen component run on."""
        self.control.signal(component, signal.SIGCONT)

    def kill(self, component: str) -> None:
        """Kill a component, which is then started again."""
        self.control.signal(component, signal.SIGKILL)

    def down(self) -> None:
        """End the cluster and remove everything but its image store."""
        with held(_lock()):
            _remove(self.state)

    def wait_ready(self, timeout_s: float = _START_TIMEOUT_S) -> None:
        """Wait until every component is ready.

        Raises:
            ClusterError: the cluster ended, or took too long; the message says why.
        """
        deadline = time.monotonic() + timeout_s
        waiting: list[str] = ["supervisor"]
        while waiting:
            if not self.record.alive:
                raise ClusterError(f"cluster {self.name} ended:{log_tail(self.state.logs / 'supervisor.log')}")
            if time.monotonic() > deadline:
                tails = "".join(f"\n  {item}:{log_tail(self.state.logs / f'{item}.log')}" for item in waiting)
                raise ClusterError(f"cluster {self.name} not ready within {timeout_s:.0f} s:{tails}")
            waiting = self._unready()
            time.sleep(0.05 if waiting else 0)

    def _unready(self) -> list[str]:
        try:
            return [name for name, item in self.control.status().items() if not item["ready"]]
        except OSError:
            return ["supervisor"]  # it does not listen yet

    def _ctr(self, *arguments: str, timeout_s: float = 60) -> str:
        program = str(binaries.path_of("ctr"))
        return self.exec_in_node(
            [program, f"--address={node.CONTAINERD_SOCKET}", "--namespace=k8s.io", *arguments], timeout_s
        )


def up(name: str, size: Size) -> LocalCluster:
    """Start a local cluster, or return the one that runs; see `api.up`."""
    prerequisites.require(*(prerequisites.NODE if size is Size.NODE else prerequisites.CONTROL_PLANE))
    if hidden := [path for path in node.hidden_folders() if cache_dir().is_relative_to(path)]:
        raise ClusterError(f"the node hides {hidden[0]}: set ZEROLAYER_CACHE to a folder outside of it")
    programs = binaries.ensure((*binaries.CONTROL_PLANE, *binaries.CLIENTS, *_node_programs(size)))
    with held(_lock()):
        running = Record.read(State.of(name))
        if running is None or not running.alive:
            running = _start(name, size, programs)
    if running.size is not size:
        raise ClusterError(f"cluster {name} runs with size {running.size}; end it first to have {size}")
    cluster = LocalCluster(running)
    try:
        cluster.wait_ready()
        if size is Size.NODE:
            _finish_node(cluster)
    except BaseException:
        shutil.copytree(cluster.state.logs, _failed_logs(name), dirs_exist_ok=True)
        cluster.down()
        print(f"logs kept in {_failed_logs(name)}", file=sys.stderr)
        raise
    return cluster


def find(name: str) -> LocalCluster:
    """Return the local cluster that runs under a name.

    Raises:
        ClusterError: there is none.
    """
    record = Record.read(State.of(name))
    if record is None or not record.alive:
        raise ClusterError(f"no cluster {name} runs; start it: python -m zerolayer_dev cluster up --name {name}")
    return LocalCluster(record)


def down(name: str) -> None:
    """End a local cluster if it runs, and remove what is left of it if it does not."""
    with held(_lock()):
        _remove(State.of(name))


def running() -> list[Record]:
    """Return the records of the local clusters that run."""
    records = [Record.read(state) for state in folders()]
    return [record for record in records if record is not None and record.alive]


def _finish_node(cluster: LocalCluster) -> None:
    from zerolayer_dev.cluster import addons  # noqa: PLC0415 - loads the image builder

    addons.install(cluster)


def _node_programs(size: Size) -> tuple[str, ...]:
    return binaries.NODE if size is Size.NODE else ()


def _failed_logs(name: str) -> Path:
    return cache_dir() / "failed" / name


def _lock() -> Path:
    return clusters_dir() / ".lock"


def _start(name: str, size: Size, programs: dict[str, Path]) -> Record:
    """Start a cluster's process; the lock is held."""
    for state in folders():
        record = Record.read(state)
        if state == State.of(name) or record is None or not record.alive:
            _remove(state)
    interfaces = host.interfaces()
    slot = free_slot([slot for slot in range(SLOTS) if interface_name(slot) in interfaces])
    state, addresses = State.of(name), Addresses.of_slot(slot)
    for folder in (state.root, state.logs, state.config):
        folder.mkdir(parents=True)
    pki.write_pki(state, name, addresses)
    control_plane.write_configuration(state)
    store, lock = free_store() if size is Size.NODE else (None, None)
    try:
        _plan(state, name, addresses, programs, store).write(state.plan)
        if size is Size.NODE:
            host.create_cgroups(name)
        outer, init = host.start(state)
    finally:
        if lock is not None:
            os.close(lock)
    record = Record(name, size, slot, outer, init, None if store is None else str(store))
    record.write()
    host.link(slot, init)
    return record


def _plan(
    state: State, name: str, addresses: Addresses, programs: dict[str, Path], store: Path | None
) -> Plan:
    components = control_plane.components(state, addresses, programs)
    if store is not None:
        plugins = prerequisites.cni_directory()
        assert plugins is not None  # noqa: S101 - `up` has required the plugins
        node.write_configuration(state, name, addresses, store, plugins)
        sweep = (
            *(sys.executable, "-m", "zerolayer_dev.cluster.sweep"),
            *(str(programs["containerd"]), str(programs["ctr"]), str(state.config / "containerd-sweep.toml")),
        )
        components += node.components(state, name, addresses, programs, sweep)
    return Plan(
        hostname=name,
        address=f"{addresses.node}/30",
        # containerd looks for its shim there.
        path=":".join([*dict.fromkeys(str(program.parent) for program in programs.values()), _SYSTEM_PATH]),
        logs=str(state.logs),
        control=str(state.control),
        components=components,
        mounts=node.mounts(state) if store is not None else (),
    )


def _remove(state: State) -> None:
    """End what runs in a cluster's folder and remove all its traces; the lock is held."""
    record = Record.read(state)
    if record is not None:
        for process in (record.outer, record.init):
            process.end()
        host.unlink(record.slot)
    host.remove_cgroups(state.root.name)
    shutil.rmtree(state.root, ignore_errors=record is None)

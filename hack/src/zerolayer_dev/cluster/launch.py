"""Starts local clusters, and finds and ends those that run."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from zerolayer_dev.cluster import addons, binaries, control_plane, host, node, pki, prerequisites, teardown
from zerolayer_dev.cluster.api import ClusterError
from zerolayer_dev.cluster.images import free_store
from zerolayer_dev.cluster.layout import SLOTS, Addresses, Size, State, interface_name
from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.cluster.locks import held
from zerolayer_dev.cluster.plan import Plan
from zerolayer_dev.cluster.record import Record, folders, free_slot
from zerolayer_dev.paths import cache_dir

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from zerolayer_dev.cluster.plan import Component

# Ends of pipes that the kernel closes with this process, and so ends the clusters tied to it.
_lifelines: dict[str, int] = {}
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def up(
    name: str, size: Size, *, tied: bool = False, flags: Mapping[str, Sequence[str]] | None = None
) -> LocalCluster:
    """Start a local cluster, or return the one that runs; see `api.up`.

    Args:
        name: of the cluster.
        size: of the cluster.
        tied: see `api.up`.
        flags: more flags by component, for a cluster that does not run yet; of two alike the last one holds.
    """
    prerequisites.require(*(prerequisites.NODE if size is Size.NODE else prerequisites.CONTROL_PLANE))
    if hidden := [path for path in node.hidden_folders() if cache_dir().is_relative_to(path)]:
        raise ClusterError(f"the node hides {hidden[0]}: set ZEROLAYER_CACHE to a folder outside of it")
    programs = binaries.ensure((*binaries.CONTROL_PLANE, *binaries.CLIENTS, *_node_programs(size)))
    # Before anything runs: a build and a starting control plane would only hinder each other.
    archives = _addon_archives() if size is Size.NODE else []
    with held(teardown.lock()):
        running = Record.read(State.of(name))
        if running is None or not running.alive:
            running = _start(name, size, programs, tied=tied, flags=flags or {})
    if running.size is not size:
        raise ClusterError(f"cluster {name} runs with size {running.size}; end it first to have {size}")
    cluster = LocalCluster(running)
    try:
        cluster.wait_ready()
        if size is Size.NODE:
            addons.install(cluster, archives)
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
        raise ClusterError(f"no cluster {name} runs; start it: make cluster-up NAME={name}")
    return LocalCluster(record)


def down(name: str) -> None:
    """End a local cluster if it runs, and remove what is left of it if it does not."""
    with held(teardown.lock()):
        teardown.remove(State.of(name))


def running() -> list[Record]:
    """Return the records of the local clusters that run."""
    records = [Record.read(state) for state in folders()]
    return [record for record in records if record is not None and record.alive]


def _addon_archives() -> list[Path]:
    from zerolayer_dev.images.build import build  # noqa: PLC0415 - the image builder uses `binaries` in turn
    from zerolayer_dev.images.engines import choose  # noqa: PLC0415

    return build(addons.IMAGES, choose())


def _node_programs(size: Size) -> tuple[str, ...]:
    return binaries.NODE if size is Size.NODE else ()


def _failed_logs(name: str) -> Path:
    return cache_dir() / "failed" / name


def _start(
    name: str, size: Size, programs: dict[str, Path], *, tied: bool, flags: Mapping[str, Sequence[str]]
) -> Record:
    """Start a cluster's process; the lock is held."""
    for state in folders():
        record = Record.read(state)
        if state == State.of(name) or record is None or not record.alive:
            teardown.remove(state)
    interfaces = host.interfaces()
    slot = free_slot([slot for slot in range(SLOTS) if interface_name(slot) in interfaces])
    state, addresses = State.of(name), Addresses.of_slot(slot)
    for folder in (state.root, state.logs, state.config):
        folder.mkdir(parents=True)
    pki.write_pki(state, name, addresses)
    control_plane.write_configuration(state)
    with ExitStack() as inherited:
        store, lock = inherited.enter_context(free_store()) if size is Size.NODE else (None, None)
        lifeline = inherited.enter_context(_lifeline(name)) if tied else None
        plan = _plan(state, name, addresses, programs, store=store, lifeline=lifeline)
        replace(plan, components=with_flags(plan.components, flags)).write(state.plan)
        if size is Size.NODE:
            host.create_cgroups(name)
        outer, init = host.start(state, [item for item in (lock, lifeline) if item is not None])
    record = Record(name, size, slot, outer, init, None if store is None else str(store))
    record.write()
    host.link(slot, init)
    return record


def with_flags(components: Sequence[Component], flags: Mapping[str, Sequence[str]]) -> tuple[Component, ...]:
    """Return components with more flags behind those that they have.

    Args:
        components: of a cluster.
        flags: by component.

    Raises:
        ClusterError: there is no such component.
    """
    if unknown := flags.keys() - {component.name for component in components}:
        raise ClusterError(f"flags for {', '.join(sorted(unknown))}, which the cluster does not have")
    return tuple(
        replace(component, command=(*component.command, *flags.get(component.name, ())))
        for component in components
    )


@contextmanager
def _lifeline(name: str) -> Iterator[int]:
    """Yield a descriptor for the cluster to inherit, which reads its end once this process is gone."""
    read, write = os.pipe2(os.O_CLOEXEC)
    if (earlier := _lifelines.pop(name, None)) is not None:
        os.close(earlier)
    _lifelines[name] = write
    os.set_inheritable(read, True)
    try:
        yield read
    finally:
        os.close(read)


def _plan(
    state: State,
    name: str,
    addresses: Addresses,
    programs: dict[str, Path],
    *,
    store: Path | None,
    lifeline: int | None,
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
        services=str(addresses.services),
        # containerd looks for its shim there.
        path=":".join([*dict.fromkeys(str(program.parent) for program in programs.values()), _SYSTEM_PATH]),
        logs=str(state.logs),
        control=str(state.control),
        components=components,
        mounts=node.mounts(state) if store is not None else (),
        lifeline=lifeline,
    )

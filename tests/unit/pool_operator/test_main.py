"""What kopf is told to do, and what it must never do."""

import time
from itertools import pairwise

import kopf
import pytest
from kopf._core.intents import causes

from zerolayer_operator.api.kinds import CHILD_KINDS, NETWORK_POLICY, POD, Kind
from zerolayer_operator.api.status import Phase, PoolStatus
from zerolayer_operator.health import Heartbeat
from zerolayer_operator.main import OURS, build_registry, configure, pool_of
from zerolayer_operator.observe.kept import STEADY
from zerolayer_operator.reconcile import Reconciler
from zerolayer_operator.settings import Settings
from zerolayer_operator.workqueue import PoolKey


class NoClient:
    """Stands where a connection would be; nothing here talks to an API server."""

    configuration = None


def registry(*, network_policy: bool = True) -> kopf.OperatorRegistry:
    settings = Settings(worker_image="w:1", network_policy=network_policy)
    return build_registry(Reconciler(NoClient(), settings, Heartbeat(60)), settings)  # type: ignore[arg-type]


def test_nothing_is_registered_that_would_put_a_finalizer_or_annotation_on_pools() -> None:
    made = registry()

    assert made._spawning._handlers == []
    assert made._changing._handlers == []
    assert made._indexing._handlers == []
    assert {type(handler).__name__ for handler in made._watching._handlers} == {"WatchingHandler"}


def test_pools_and_every_kind_of_child_are_watched() -> None:
    selectors = {handler.selector.any_name for handler in registry()._watching._handlers}

    assert selectors == {"zerolayerpools", POD.plural, *(kind.plural for kind in CHILD_KINDS)}


def test_policies_are_not_watched_where_they_are_switched_off() -> None:
    watched = {handler.selector.any_name for handler in registry(network_policy=False)._watching._handlers}

    assert NETWORK_POLICY.plural not in watched


def test_login_needs_no_client_library() -> None:
    activities = registry()._activities._handlers

    assert causes.Activity.AUTHENTICATION in {handler.activity for handler in activities}


def test_watches_end_and_see_only_our_own_children() -> None:
    settings = kopf.OperatorSettings()
    configure(settings, (POD,))

    assert settings.posting.enabled is False
    assert settings.scanning.disabled is True
    for timeout in ("server_timeout", "client_timeout", "connect_timeout", "inactivity_timeout"):
        assert getattr(settings.watching, timeout) is not None
    assert settings.watching.client_timeout > settings.watching.server_timeout  # type: ignore[operator]
    assert dict(settings.watching.label_selectors)[next(iter(settings.watching.label_selectors))] == OURS


@pytest.mark.parametrize(
    ("metadata", "key"),
    [
        ({"namespace": "n", "labels": {"zerolayer.dev/pool": "p"}}, PoolKey("n", "p")),
        (
            {"namespace": "n", "ownerReferences": [{"kind": "ZeroLayerPool", "name": "q"}]},
            PoolKey("n", "q"),
        ),
        ({"namespace": "n", "labels": {"zerolayer.dev/golden": "p"}}, PoolKey("n", "p")),
        ({"namespace": "n", "ownerReferences": [{"kind": "ReplicaSet", "name": "q"}]}, None),
        ({"namespace": "n"}, None),
    ],
    ids=["by label", "by controller", "asks its golden set", "of somebody else", "of nobody"],
)
def test_child_is_traced_to_its_pool(metadata, key) -> None:
    assert pool_of(kopf.Body({"metadata": metadata})) == key


@pytest.mark.parametrize("kind", [POD, *CHILD_KINDS], ids=lambda kind: kind.kind)
async def test_children_that_are_kept_are_read_anew_once_a_watch_tells_of_one(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of an event that is no news: what is kept would differ from what is there."""
    reconciler = Reconciler(NoClient(), Settings(worker_image="w:1"), Heartbeat(60))  # type: ignore[arg-type]
    told: list[PoolKey] = []
    monkeypatch.setattr(reconciler, "changed", told.append)
    monkeypatch.setattr(reconciler.queue, "add", lambda _: None)
    made = build_registry(reconciler, Settings(worker_image="w:1"))
    (handler,) = (item for item in made._watching._handlers if item.selector.any_name == kind.plural)
    metadata = {"namespace": "n", "name": "c", "uid": "u", "labels": {"zerolayer.dev/pool": "p"}}
    body = kopf.Body({"kind": kind.kind, "metadata": metadata})

    for change in (None, "MODIFIED", "DELETED"):
        await handler.fn(type=change, body=body)

    assert told == [PoolKey("n", "p")] * (3 if kind in STEADY else 0)


async def test_a_round_reads_everything_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    reconciler = Reconciler(NoClient(), Settings(worker_image="w:1"), Heartbeat(60))  # type: ignore[arg-type]
    told: list[PoolKey] = []

    async def listed(*_: object) -> list[dict[str, dict[str, str]]]:
        return [{"metadata": {"namespace": "n", "name": "p"}}]

    monkeypatch.setattr(reconciler._kube, "list", listed)
    monkeypatch.setattr(reconciler, "changed", told.append)
    monkeypatch.setattr(reconciler.queue, "add", lambda _: None)

    await reconciler.resync()

    assert told == [PoolKey("n", "p")]


async def test_a_round_is_spread_over_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pools that are looked at together would hold up the events of all others."""
    reconciler = Reconciler(NoClient(), Settings(worker_image="w:1"), Heartbeat(60))  # type: ignore[arg-type]
    added: list[float] = []
    bodies = [{"metadata": {"namespace": "n", "name": f"p{number}"}} for number in range(4)]

    async def listed(*_: object) -> list[dict[str, dict[str, str]]]:
        return bodies

    monkeypatch.setattr(reconciler._kube, "list", listed)
    monkeypatch.setattr(reconciler.queue, "add", lambda _: added.append(time.monotonic()))

    await reconciler.resync(within_s=0.2)

    assert len(added) == len(bodies)
    assert all(later - earlier >= 0.04 for earlier, later in pairwise(added))


async def test_a_round_looks_for_pools_too_that_nobody_told_of_to_be_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A pool that is deleted while its watch is broken off would stay in the metrics, and be asked about."""
    reconciler = Reconciler(NoClient(), Settings(worker_image="w:1"), Heartbeat(60))  # type: ignore[arg-type]
    added: list[PoolKey] = []

    async def listed(*_: object) -> list[dict[str, dict[str, str]]]:
        return [{"metadata": {"namespace": "n", "name": "there"}}]

    monkeypatch.setattr(reconciler._kube, "list", listed)
    monkeypatch.setattr(reconciler.queue, "add", added.append)
    for name in ("there", "gone"):
        reconciler._remember(PoolKey("n", name), PoolStatus(phase=Phase.READY))

    await reconciler.resync()

    assert added == [PoolKey("n", "there"), PoolKey("n", "gone")]

"""What kopf does for the operator: it watches, and every event asks for one reconcile of one pool.

Only `kopf.on.event` is used. Timers, daemons and deletion handlers would put a finalizer on pools, which then
could not be deleted while the operator is away; change handlers would write annotations.
"""

import asyncio
import contextlib
import logging
from typing import Any, Final

import kopf

from zerolayer_operator.api import names
from zerolayer_operator.api.kinds import AUTOSCALER, CHILD_KINDS, NETWORK_POLICY, POD, Kind
from zerolayer_operator.kube import ApiServerError
from zerolayer_operator.news import ChildNews, News
from zerolayer_operator.observe.kept import STEADY
from zerolayer_operator.reconcile import Reconciler
from zerolayer_operator.settings import Settings
from zerolayer_operator.workqueue import PoolKey

log = logging.getLogger(__name__)

OURS: Final = f"{names.LABEL_MANAGED_BY}={names.FIELD_MANAGER}"


def build_registry(reconciler: Reconciler, settings: Settings) -> kopf.OperatorRegistry:
    """The handlers and the resync task, for `kopf.operator(registry=…)`."""
    registry = kopf.OperatorRegistry()
    watched = _watched(settings)
    resync = _Resync(reconciler, settings.resync_interval_s)

    @kopf.on.startup(registry=registry)
    async def start(settings: kopf.OperatorSettings, **_: Any) -> None:  # pyright: ignore[reportUnusedFunction]
        configure(settings, watched)
        resync.start()

    @kopf.on.cleanup(registry=registry)
    async def stop(**_: Any) -> None:  # pyright: ignore[reportUnusedFunction]
        await resync.stop()
        await reconciler.tuner.close()
        await reconciler.assessor.close()
        await reconciler.queue.close()

    @kopf.on.login(registry=registry)
    def login(**arguments: Any) -> kopf.ConnectionInfo | None:  # pyright: ignore[reportUnusedFunction]
        return kopf.login_with_service_account(**arguments) or kopf.login_with_kubeconfig(**arguments)

    news = News()

    @kopf.on.event(names.GROUP, names.VERSION, names.PLURAL, registry=registry)
    async def pool_changed(  # pyright: ignore[reportUnusedFunction]
        type: str | None,  # noqa: A002 - kopf's name
        body: kopf.Body,
        **_: Any,
    ) -> None:
        key = PoolKey(body["metadata"]["namespace"], body["metadata"]["name"])
        if news.holds(key, type, body):
            reconciler.queue.add(key)

    _watch_children(registry, reconciler, watched)
    return registry


def _watch_children(
    registry: kopf.OperatorRegistry, reconciler: Reconciler, watched: tuple[Kind, ...]
) -> None:
    news = ChildNews()
    steady = {kind.kind for kind in STEADY}

    async def child_changed(
        type: str | None,  # noqa: A002 - kopf's name
        body: kopf.Body,
        **_: Any,
    ) -> None:
        key = pool_of(body)
        if key is None:
            return
        if body["kind"] in steady:
            reconciler.changed(key)
        if body["kind"] == AUTOSCALER.kind and type != "DELETED":
            reconciler.tuner.saw_autoscaler(key, dict(body))
        if news.holds(type, body):
            reconciler.queue.add(key)

    for kind in watched:
        kopf.on.event(*_resource(kind), id=f"{kind.plural}-changed", registry=registry)(child_changed)


def configure(settings: kopf.OperatorSettings, watched: tuple[Kind, ...]) -> None:
    """Watches that end and start anew, that see our own children only, and no Events of kopf's own."""
    settings.posting.enabled = False
    # Every kind is known beforehand, so neither CRDs nor namespaces need watching.
    settings.scanning.disabled = True
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 330
    settings.watching.connect_timeout = 15
    settings.watching.inactivity_timeout = 75
    settings.networking.request_timeout = 30
    # The handlers used here persist nothing; should that change, it shall not be under kopf's name.
    settings.persistence.finalizer = f"{names.GROUP}/never"
    for kind in watched:
        settings.watching.label_selectors[_resource(kind)] = OURS


def pool_of(body: kopf.Body) -> PoolKey | None:
    """The pool that a child belongs to, by its label or, where somebody took that away, by its controller."""
    namespace = body.metadata.namespace
    labels = body.metadata.labels
    name = labels.get(names.LABEL_POOL) or labels.get(names.LABEL_GOLDEN)
    owners: list[dict[str, Any]] = body.metadata.get("ownerReferences") or []
    if name is None:
        name = next((owner["name"] for owner in owners if owner["kind"] == names.KIND), None)
    return PoolKey(namespace, name) if namespace and name else None


def _watched(settings: Settings) -> tuple[Kind, ...]:
    kinds = (*CHILD_KINDS, POD)
    return tuple(kind for kind in kinds if kind is not NETWORK_POLICY or settings.network_policy)


def _resource(kind: Kind) -> tuple[str, str, str]:
    group, _, version = kind.api_version.rpartition("/")
    return group, version, kind.plural


class _Resync:
    """Looks at every pool now and then: watches may miss something, Secrets and claims aren't watched.

    A round takes the whole interval: of many pools looked at together, each would hold up the others' events.
    """

    def __init__(self, reconciler: Reconciler, interval_s: float) -> None:
        self._reconciler = reconciler
        self._interval_s = interval_s
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the rounds."""
        self._task = asyncio.create_task(self._rounds(), name="resync")

    async def stop(self) -> None:
        """End the rounds."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _rounds(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + self._interval_s
            try:
                await self._reconciler.resync(self._interval_s)
            except ApiServerError as error:
                log.warning("resync: the API server: %s", error)
            except Exception:
                log.exception("resync failed")
            self._reconciler.beat()
            await asyncio.sleep(due - loop.time())

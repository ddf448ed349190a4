"""One level-triggered reconcile per pool: observe, decide, build, apply, report."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from kubernetes.aio.client import ApiClient

from zerolayer_operator import metrics
from zerolayer_operator.api.kinds import EVENT, HTTP_ROUTE, POD_MONITOR, POOL, SCALED_OBJECT
from zerolayer_operator.api.status import PoolStatus
from zerolayer_operator.apply.execute import Outcome, carry_out
from zerolayer_operator.apply.status import write_status
from zerolayer_operator.assessing import Assessor
from zerolayer_operator.build.children import children
from zerolayer_operator.build.meta import OPS_PORT
from zerolayer_operator.decide import events
from zerolayer_operator.decide.decision import Decision
from zerolayer_operator.decide.defaults import Defaults
from zerolayer_operator.decide.plan import Plan, pinned, plan
from zerolayer_operator.decide.report import report
from zerolayer_operator.decide.update_due import due_in
from zerolayer_operator.health import Heartbeat
from zerolayer_operator.knowledge_hits import KnowledgeHits
from zerolayer_operator.kube import NOT_FOUND, ApiServerError, Kube
from zerolayer_operator.observe.gather import Gatherer
from zerolayer_operator.observe.hub import HubResolver, ResolveCommit
from zerolayer_operator.observe.load_sources import LoadSources
from zerolayer_operator.observe.lookups import Lookups
from zerolayer_operator.observe.optional import OptionalKind
from zerolayer_operator.observe.query_checks import QueryChecks
from zerolayer_operator.observe.registry import Registries
from zerolayer_operator.observe.scrape import Scraper
from zerolayer_operator.observe.state import ObservedPool
from zerolayer_operator.settings import Settings
from zerolayer_operator.tuning import Sink, Tuner
from zerolayer_operator.workqueue import PoolKey, WorkQueue

log = logging.getLogger(__name__)


class Reconciler:
    """Brings pools to what their specs ask.

    Args:
        client: The connection to the API server.
        settings: The operator's settings.
        heartbeat: Told of every reconcile and every round over all pools.
        resolve: Resolves model revisions; the Hugging Face hub if absent.
        sinks: Where the figures of autoscaled pools go.
        clock: The time, in UTC.
    """

    def __init__(
        self,
        client: ApiClient,
        settings: Settings,
        heartbeat: Heartbeat,
        *,
        resolve: ResolveCommit | None = None,
        sinks: Iterable[Sink] = (),
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._kube = Kube(client)
        self._settings = settings
        self._heartbeat = heartbeat
        self._clock = clock
        self._defaults = _defaults(settings)
        self._phases: dict[PoolKey, str] = {}
        lookups = Lookups(
            resolve or HubResolver(settings.hub_endpoint),
            Registries(settings.registries),
            settings.worker_image,
            settings.worker_image_pull_policy,
        )
        self._gatherer = Gatherer(
            self._kube,
            lookups,
            network_policies=settings.network_policy,
            pod_monitors=OptionalKind(self._kube, POD_MONITOR) if settings.pod_monitor else None,
            scaled_objects=OptionalKind(self._kube, SCALED_OBJECT) if settings.keda else None,
            http_routes=OptionalKind(self._kube, HTTP_ROUTE) if settings.gateway else None,
        )
        self.queue = WorkQueue(self._work)
        sources = LoadSources(self._kube, OPS_PORT, settings.prometheus_addresses)
        queries = QueryChecks(sources.choose, sources.threads)
        self.tuner = Tuner(sources, self.queue.add, sinks)
        self.assessor = Assessor(
            Scraper(OPS_PORT), queries, self.queue.add, pace_s=settings.canary_interval_s, today=clock
        )
        self._hits = KnowledgeHits()

    async def reconcile(self, namespace: str, name: str) -> None:
        """Look at a pool once and do whatever brings it closer to its spec.

        Raises:
            ApiServerError: The API server can't be reached or fails; the pool is to be looked at again.
        """
        key = PoolKey(namespace, name)
        pool = await self._gatherer.observe(namespace, name)
        if pool is None:
            self.changed(key)
            self._forget(key)
            self.tuner.forget(key)
            self.assessor.forget(key)
            self._hits.forget(key)
            self.queue.add_later(key, None)
            return
        self._hits.saw(pool)
        assessment = self.assessor.assess(pool)
        planned = plan(pool, self._defaults, self._clock(), assessment)
        decided = pinned(await self.tuner.tuned(pool, planned))
        await self._tell(pool, events.planned(pool, decided))
        outcome = await self._carry_out(pool, decided)
        problems, waiting = tuple(outcome.problems), tuple(outcome.waiting)
        status = report(pool, decided, problems, self._clock(), waiting)
        await self._tell(pool, events.reported(pool, status))
        await write_status(self._kube, pool, status)
        self.queue.add_later(key, due_in(decided, self._clock()))
        self._remember(key, status)

    def changed(self, key: PoolKey) -> None:
        """Have a pool's steady children read anew at the next look, whenever that comes."""
        self._gatherer.kept.drop((key.namespace, key.name))

    async def resync(self, within_s: float = 0.0) -> None:
        """Ask for every pool to be looked at, those too that went away while no watch was open.

        Args:
            within_s: Seconds over which that is spread.

        Raises:
            ApiServerError: The API server can't be reached or fails.
        """
        there = [
            PoolKey(body["metadata"]["namespace"], body["metadata"]["name"])
            for namespace in self._settings.namespaces or ("",)
            for body in await self._kube.list(POOL, namespace)
        ]
        keys = tuple(dict.fromkeys((*there, *self._phases)))
        for key in keys:
            self.changed(key)
            self.queue.add(key)
            await asyncio.sleep(within_s / len(keys))
        metrics.RESYNC_LAST_TIMESTAMP.set(time.time())

    def beat(self) -> None:
        """Tell the health endpoint that the resync loop came round."""
        self._heartbeat.beat("resync")

    async def _work(self, key: PoolKey) -> bool:
        """Reconcile one pool for the queue; whatever goes wrong is logged and tried again later."""
        started = time.monotonic()
        place = {"namespace": key.namespace, "pool": key.name}
        try:
            await self.reconcile(key.namespace, key.name)
        except ApiServerError as error:
            if error.status == NOT_FOUND:
                # Deleted while it was worked on, or about to be: the next event or round will tell.
                log.info("pool or namespace went away", extra=place)
                return self._done("gone", started)
            log.warning("the API server: %s", error, extra=place)
            return self._done("error", started)
        except Exception:
            log.exception("reconcile failed", extra=place)
            return self._done("bug", started)
        return self._done("ok", started)

    async def _carry_out(self, pool: ObservedPool, decided: Plan) -> Outcome:
        wrote = True
        try:
            outcome = await carry_out(self._kube, pool, decided, children(pool, decided, self._defaults))
            wrote = outcome.writes > 0
        finally:
            # Broken off or not: the next look may come before the events of what was written.
            if wrote:
                self.changed(PoolKey(pool.namespace, pool.name))
        return outcome

    def _done(self, result: str, started: float) -> bool:
        metrics.RECONCILES.labels(result=result).inc()
        metrics.RECONCILE_SECONDS.observe(time.monotonic() - started)
        self._heartbeat.beat("reconcile")
        return result in {"ok", "gone"}

    async def _tell(self, pool: ObservedPool, decisions: Iterable[Decision]) -> None:
        for decision in decisions:
            body = events.event(pool, decision, self._clock(), self._settings.pod_name)
            if await self._kube.create(EVENT, body):
                metrics.DECISIONS.labels(reason=decision.reason).inc()
                log.info(
                    decision.message,
                    extra={"namespace": pool.namespace, "pool": pool.name, "reason": decision.reason},
                )

    def _remember(self, key: PoolKey, status: PoolStatus) -> None:
        self._forget(key)
        if status.phase is not None:
            self._phases[key] = status.phase
            metrics.POOLS.labels(phase=status.phase).inc()

    def _forget(self, key: PoolKey) -> None:
        phase = self._phases.pop(key, None)
        if phase is not None:
            metrics.POOLS.labels(phase=phase).dec()


def _defaults(settings: Settings) -> Defaults:
    return Defaults(
        worker_image=settings.worker_image,
        worker_image_pull_policy=settings.worker_image_pull_policy,
        network_policy=settings.network_policy,
        image_volumes=settings.image_volumes,
        allow_host_path=settings.allow_host_path,
        operator_namespace=settings.pod_namespace,
        prometheus_namespace=settings.prometheus_namespace,
        pod_monitor_interval=settings.pod_monitor_interval,
        pod_monitor_labels=settings.pod_monitor_labels,
        keda=settings.keda,
        prometheus_addresses=settings.prometheus_addresses,
    )

"""Follows the load of pools that are autoscaled, and keeps account of it: the I/O around `decide.tuning`."""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

from zerolayer_operator.api.kinds import AUTOSCALER, SCALED_OBJECT
from zerolayer_operator.api.scaling import AutoscalingSpec, ScaleDownMode
from zerolayer_operator.api.status import ScalingStatus
from zerolayer_operator.decide.autoscaling import PlannedScaling
from zerolayer_operator.decide.behavior import behavior_of
from zerolayer_operator.decide.deletion_cost import Outlook, foreseeable, planned_costs
from zerolayer_operator.decide.figures import Figures
from zerolayer_operator.decide.hpa_replay import Bounds
from zerolayer_operator.decide.latency import Weight, weight_of
from zerolayer_operator.decide.ledger import Ledger, Terms
from zerolayer_operator.decide.money import bill
from zerolayer_operator.decide.plan import Plan
from zerolayer_operator.decide.scaling_status import is_due, scaling_status
from zerolayer_operator.decide.tuning import Look, Tuning, look_closely
from zerolayer_operator.decide.window import Setting
from zerolayer_operator.metrics import LOOK_SECONDS
from zerolayer_operator.observe.access import timestamp
from zerolayer_operator.observe.autoscaler import AutoscalerSetting, last_metric, live_setting
from zerolayer_operator.observe.first_tokens import Waits
from zerolayer_operator.observe.load import ObservedLoad
from zerolayer_operator.observe.load_source import LoadTarget, load_target
from zerolayer_operator.observe.load_sources import Choice, LoadSources
from zerolayer_operator.observe.load_watch import LoadWatch
from zerolayer_operator.observe.state import Object, ObservedPool
from zerolayer_operator.workqueue import PoolKey


class Sink(Protocol):
    """Something that shows pools' figures."""

    def tell(self, key: PoolKey, figures: Figures) -> None:
        """Takes a pool's newest figures."""
        ...

    def forget(self, key: PoolKey) -> None:
        """Forgets a pool; nothing happens if it was not known."""
        ...


@dataclass(slots=True)
class _Followed:
    """A pool as of its last reconcile, and what is remembered from look to look.

    Attributes:
        since: When its present workers were first asked about where they are asked about now, in seconds of a
            clock that only goes forward.
        told_at: When the figures in its status were renewed last, on the same clock.
    """

    pool: ObservedPool
    scaling: AutoscalingSpec
    target: LoadTarget
    choice: Choice
    updating: bool
    since: float
    told_at: float
    ledger: Ledger
    remembered: Setting | None = None
    hpa: Object = field(default_factory=dict[str, object])


class Tuner:
    """Decides how the autoscalers of pools are set.

    A pool is looked at whenever it is reconciled, and every 15 s beside that: such a look costs no call to
    the API server, and asks for a reconcile where something is to change.

    Args:
        sources: Who is asked about the load.
        changed: Asks for a pool to be reconciled.
        sinks: Where every look's figures go.
        clock: Seconds since 1970.
        monotonic: Seconds of a clock that only goes forward.
    """

    def __init__(
        self,
        sources: LoadSources,
        changed: Callable[[PoolKey], None],
        sinks: Iterable[Sink] = (),
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sources = sources
        self._changed = changed
        self._sinks = tuple(sinks)
        self._clock = clock
        self._monotonic = monotonic
        self._pools: dict[PoolKey, _Followed] = {}
        self._watch = LoadWatch(self._asked)

    async def tuned(self, pool: ObservedPool, decided: Plan) -> Plan:
        """The plan with the autoscaler set as the load asks, and with the workers that are to go first.

        Raises:
            ApiServerError: The API server refuses to tell credentials, or can't be reached.
        """
        key = PoolKey(pool.namespace, pool.name)
        scaling = decided.spec.autoscaling if decided.spec is not None else None
        if scaling is None or decided.scaling is None or decided.serving is None:
            self.forget(key)
            return replace(decided, costs=planned_costs(pool, decided.serving, {}, 0))
        choice = None
        if scaling.scale_down.mode == ScaleDownMode.FLATNESS:
            choice = await self._sources.choose(pool.namespace, scaling.prometheus)
        followed = self._follow(key, pool, scaling, decided, choice)
        tuning, status = self._look(key, followed)
        followed.remembered = tuning.setting
        if status is not pool.status.scaling:
            followed.told_at = self._monotonic()
        return replace(
            decided,
            scaling=_set(decided.scaling, tuning),
            tuning=tuning,
            scaling_status=status,
            costs=self._costs(followed, tuning),
        )

    def saw_autoscaler(self, key: PoolKey, hpa: Object) -> None:
        """Takes a newer state of a pool's autoscaler, from a watch."""
        if key in self._pools:
            self._pools[key].hpa = _without_metadata(hpa)

    def forget(self, key: PoolKey) -> None:
        """Looks at a pool no more; nothing happens if it was not looked at."""
        if self._pools.pop(key, None) is not None:
            self._watch.forget(key.namespace, key.name)
            self._keep_sources()
            for sink in self._sinks:
                sink.forget(key)

    async def close(self) -> None:
        """Looks at no pool any more."""
        await self._watch.close()
        await self._sources.close()

    def _follow(
        self, key: PoolKey, pool: ObservedPool, scaling: AutoscalingSpec, decided: Plan, choice: Choice
    ) -> _Followed:
        first_tokens = scaling.cost is not None and scaling.cost.latency_penalty is not None
        target = replace(load_target(pool, decided.serving or ""), first_tokens=first_tokens)
        pool = _kept(pool)
        now = self._monotonic()
        followed = self._pools.get(key)
        if followed is None or followed.pool.uid != pool.uid:
            followed = _Followed(
                pool, scaling, target, choice, decided.updating, now, -math.inf, _ledger(pool.status.scaling)
            )
            followed.remembered = _remembered(pool, self._clock(), updating=decided.updating)
            self._pools[key] = followed
        changed = followed.choice != choice
        if changed or followed.target.revision != target.revision:
            followed.since = now
        followed.pool, followed.scaling, followed.target = pool, scaling, target
        followed.choice, followed.updating, followed.hpa = choice, decided.updating, pool.autoscaler
        self._watch.follow(target, self._sources.source(choice))
        if changed:
            self._keep_sources()
        return followed

    def _keep_sources(self) -> None:
        """Tokens that no pool's Secret holds any more are not to stay in memory."""
        self._sources.keep({item.choice for item in self._pools.values()})

    def _asked(self, namespace: str, name: str) -> None:
        """A look beside the reconciles."""
        key = PoolKey(namespace, name)
        followed = self._pools.get(key)
        if followed is None:
            return
        tuning, status = self._look(key, followed)
        if status is followed.pool.status.scaling and not self._costs(followed, tuning):
            followed.remembered = tuning.setting
        else:
            self._changed(key)

    @LOOK_SECONDS.time()
    def _look(self, key: PoolKey, followed: _Followed) -> tuple[Tuning, ScalingStatus]:
        now, monotonic = self._clock(), self._monotonic()
        load = self._watch.load(followed.target)
        look = _look_at(followed, load)
        tuning = look_closely(look, followed.remembered, monotonic - followed.since, now)
        waits = self._sources.waits(followed.target)
        weight = weight_of(look.scaling.cost, waits)
        _account(followed, look, tuning, weight, monotonic)
        figures = _with_money(_figures(followed, look, tuning, now), followed, waits, weight)
        for sink in self._sinks:
            sink.tell(key, figures)
        return tuning, self._status(followed, tuning, figures)

    def _costs(self, followed: _Followed, tuning: Tuning) -> Mapping[str, int | None]:
        """The changes of what tells which workers go first."""
        requests = self._sources.requests(followed.target)
        if requests is None:
            return {}
        going = foreseeable(_outlook(followed, tuning))
        return planned_costs(followed.pool, followed.target.revision, requests, going)

    def _status(self, followed: _Followed, tuning: Tuning, figures: Figures) -> ScalingStatus:
        """The status; the very one that is there where that will do for now."""
        before, now = followed.pool.status.scaling, datetime.fromtimestamp(figures.at, UTC)
        status = scaling_status(tuning, figures, before, now)
        if before is None:
            return status
        since_s = self._monotonic() - followed.told_at
        if status == before or not is_due(before, status, since_s, pending=tuning.pending):
            return before
        return status


def _kept(pool: ObservedPool) -> ObservedPool:
    """What looks need of a pool: all of some hundred pools would be most of the operator's memory."""
    kinds = {AUTOSCALER.kind, SCALED_OBJECT.kind}
    scalers = {key: _without_metadata(body) for key, body in pool.children.items() if key.kind in kinds}
    return replace(
        pool,
        children=scalers,
        raw_status={},
        deployments=tuple(replace(item, template={}) for item in pool.deployments),
        autoscaler=_without_metadata(pool.autoscaler),
    )


def _without_metadata(body: Object) -> Object:
    return {name: value for name, value in body.items() if name != "metadata"}


def _set(planned: PlannedScaling, tuning: Tuning) -> PlannedScaling:
    return replace(planned, window_s=tuning.setting.window_s, floor=tuning.setting.floor)


def _ledger(told: ScalingStatus | None) -> Ledger:
    """The account, going on from what an earlier operator has told."""
    if told is None:
        return Ledger()
    penalty_s = told.replica_seconds_penalty
    return Ledger(
        saved_s=float(told.replica_seconds_saved or 0),
        spent_s=float(told.replica_seconds_spent or 0),
        regrets=told.regrets or 0,
        penalty_s=None if penalty_s is None else float(penalty_s),
    )


def _remembered(pool: ObservedPool, now: float, *, updating: bool) -> Setting | None:
    """What an earlier operator's status and the autoscaler tell of its last look."""
    live, told = _standing(pool, updating=updating), pool.status.scaling
    changed_at = timestamp(told.last_change) if told is not None else None
    if live is None or live.window_s is None or changed_at is None:
        return None
    serving = pool.deployment(pool.status.serving_revision)
    replicas = serving.size if serving is not None else live.floor
    return Setting(live.window_s, live.floor, replicas, min(changed_at.timestamp(), now))


def _standing(pool: ObservedPool, *, updating: bool) -> AutoscalerSetting | None:
    """What the autoscaler is set to.

    A floor that a step of an update has pinned is no hold, and would stay as one when the update is over: the
    status tells of the hold then, also where it does not tell yet that the update has begun.
    """
    live, told = live_setting(pool), pool.status.scaling
    if live is None or not (updating or pool.status.update is not None):
        return live
    return replace(live, floor=(told.hold if told is not None else None) or 0)


def _look_at(followed: _Followed, load: ObservedLoad) -> Look:
    pool, scaling = followed.pool, followed.scaling
    serving = pool.deployment(followed.target.revision)
    warmup = pool.status.warmup
    return Look(
        scaling=scaling,
        live=_standing(pool, updating=followed.updating),
        replicas=serving.size if serving is not None else 0,
        ready=serving.ready if serving is not None else 0,
        cold_start_s=float(warmup.p95_seconds) if warmup is not None else math.inf,
        load=load,
        metric=last_metric(followed.hpa),
        updating=followed.updating,
        told=pool.status.scaling,
    )


def _outlook(followed: _Followed, tuning: Tuning) -> Outlook:
    metric = last_metric(followed.hpa)
    return Outlook(
        workers=sum(
            pod.revision == followed.target.revision and not pod.deleting for pod in followed.pool.pods
        ),
        floor=tuning.setting.floor,
        ceiling=followed.scaling.max_replicas,
        load=metric.usage_milli / metric.target_milli if metric is not None else None,
        window_s=tuning.setting.window_s,
        one_by_one=tuning.by_load,
    )


def _account(followed: _Followed, look: Look, tuning: Tuning, weight: Weight, now: float) -> None:
    scaling = look.scaling
    terms = Terms(
        Bounds(scaling.min_replicas, scaling.max_replicas),
        behavior_of(scaling, tuning.setting.window_s, one_by_one=look.by_load),
        look.cold_start_s,
    )
    followed.ledger.record(now, look.replicas, look.metric, terms, weight)


def _with_money(figures: Figures, followed: _Followed, waits: Waits | None, weight: Weight) -> Figures:
    cost = followed.scaling.cost
    if cost is None:
        return figures
    sums = bill(cost, followed.ledger)
    figures = replace(figures, spent=sums.spent, weighted=sums.weighted, saved=sums.saved)
    if cost.latency_penalty is None:
        return figures
    return replace(
        figures,
        first_token_p99_s=waits.p99_s if waits is not None else None,
        latency_penalty=weight.penalty,
        penalty_s=followed.ledger.penalty_s,
    )


def _figures(followed: _Followed, look: Look, tuning: Tuning, now: float) -> Figures:
    setting, load, ledger = tuning.setting, look.load, followed.ledger
    known = tuning.unknown is None
    newest = load.samples[-1] if known and load.samples else None
    return Figures(
        at=now,
        wanted=look.replicas,
        ready=look.ready,
        window_s=setting.window_s,
        floor=setting.floor,
        hold=setting.floor if setting.floor > look.scaling.min_replicas else None,
        utilization=newest.busy_share if newest is not None else None,
        offered_slots=tuning.offered,
        slots=load.slots_per_pod * look.ready if load.slots_per_pod is not None else None,
        flatness=setting.flatness if look.by_load else None,
        known=known,
        regrets=ledger.regrets,
        spent_s=ledger.spent_s,
        saved_s=ledger.saved_s,
        why=tuning.why,
    )

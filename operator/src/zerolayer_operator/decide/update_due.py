"""When a pool has to be looked at again though nothing happens: some steps end with a time."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.api.types import seconds
from zerolayer_operator.api.update_status import Step, UpdateStatus
from zerolayer_operator.decide.plan import Plan
from zerolayer_operator.decide.update import RAISE_PATIENCE
from zerolayer_operator.observe.access import timestamp


def due_in(decided: Plan, now: datetime) -> float | None:
    """Seconds until then; ``None`` where nothing depends on the time."""
    if decided.spec is None:
        return None
    ends = [end for end in _ends(decided, decided.spec) if end > now]
    return (min(ends) - now).total_seconds() if ends else None


def _ends(decided: Plan, spec: PoolSpec) -> Iterator[datetime]:
    if decided.failed is not None:
        until = timestamp(decided.failed.retained_until)
        if until is not None:
            yield until
    if decided.update is not None:
        yield from _of_step(decided.update, spec)


def _of_step(update: UpdateStatus, spec: PoolSpec) -> Iterator[datetime]:
    settings = spec.update
    soak_began, switched = timestamp(update.soak_started_at), timestamp(update.switched_at)
    began = timestamp(update.step_started_at)
    if update.step == Step.SOAK and soak_began is not None:
        yield soak_began + timedelta(seconds=settings.soak_s)
        yield soak_began + timedelta(seconds=settings.max_soak_s)
    if update.step == Step.RETAIN and switched is not None:
        yield switched + timedelta(seconds=seconds(settings.blue_retention))
    if update.step == Step.ROLL_BACK and began is not None:
        yield began + RAISE_PATIENCE

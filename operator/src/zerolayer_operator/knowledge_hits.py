"""Counts what golden sets found, once for each run."""

from typing import Final

from zerolayer_operator.api.update_status import CheckResult, UpdateStatus
from zerolayer_operator.decide.verdict_terms import Check
from zerolayer_operator.metrics import KNOWLEDGE_HITS
from zerolayer_operator.observe.state import ObservedPool
from zerolayer_operator.workqueue import PoolKey

_SIDES: Final = ("blue", "green")
_TELLS: Final = frozenset({CheckResult.OK, CheckResult.FAILED})


class KnowledgeHits:
    """Observes the shares of expected answers of each finished run in `metrics.KNOWLEDGE_HITS`.

    A run that the status tells of already was counted by an earlier operator.
    """

    def __init__(self) -> None:
        self._counted: dict[PoolKey, str] = {}

    def saw(self, pool: ObservedPool) -> None:
        """Counts the run of a pool's golden set, if it is over and was not counted yet."""
        golden, key = pool.golden, PoolKey(pool.namespace, pool.name)
        if (
            golden is None
            or golden.job is None
            or golden.report is None
            or self._counted.get(key) == golden.job
        ):
            return
        self._counted[key] = golden.job
        report = golden.report
        if not report.expected or report.incomplete or _is_told(pool.status.update):
            return
        for side, answers in zip(_SIDES, (report.blue, report.green), strict=True):
            share = answers.hits / report.expected
            KNOWLEDGE_HITS.labels(namespace=pool.namespace, pool=pool.name, side=side).observe(share)

    def forget(self, key: PoolKey) -> None:
        """Shows nothing of a pool any more; one that was never seen is fine."""
        if self._counted.pop(key, None) is not None:
            for side in _SIDES:
                KNOWLEDGE_HITS.remove(key.namespace, key.name, side)


def _is_told(record: UpdateStatus | None) -> bool:
    checks = record.checks if record is not None else ()
    return any(check.name == Check.GOLDEN_ANSWERS and check.result in _TELLS for check in checks)

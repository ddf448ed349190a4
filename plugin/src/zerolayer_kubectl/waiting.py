"""How an update comes out, for those who wait for it."""

from dataclasses import dataclass

from zerolayer_kubectl.pool import AWAIT_PROMOTION, PROMOTED, READY, REPLACED, RETAIN, Pool, Update
from zerolayer_kubectl.words import named


@dataclass(frozen=True, slots=True)
class Outcome:
    """How what was waited for came out.

    Attributes:
        good: Whether it is what was hoped for.
        message: A sentence on it.
        undecided: Whether it is open still, and a person has to decide it.
    """

    good: bool
    message: str
    undecided: bool = False


class Hope:
    """Waits for an update to be over, or for a wish to be granted, over any number of looks.

    Args:
        revision: The one that is to take over, or to be left; ``None`` for whatever update there is.
        promoted: Whether it is to take over.
        until_over: Whether to wait until the former revision is gone too.
    """

    def __init__(
        self, revision: str | None = None, *, promoted: bool = True, until_over: bool = True
    ) -> None:
        self._revision = revision
        self._promoted = promoted
        self._until_over = until_over
        self._watched: str | None = revision

    def look(self, pool: Pool) -> Outcome | None:
        """How it came out; ``None`` while that is open."""
        if pool.paused:
            return Outcome(False, f"pool {pool.name} is paused, so that nothing goes on: unset spec.paused")
        update = pool.update
        if update is not None and (self._revision is None or update.new.revision == self._revision):
            self._watched = update.new.revision
            if self._promoted and not self._until_over and update.step == RETAIN:
                return Outcome(True, f"revision {named(update.new)} has taken over")
            return self._for_a_person(pool, update)
        if self._watched is None:
            return self._settled(pool)
        return self._ended(pool, self._watched)

    def _for_a_person(self, pool: Pool, update: Update) -> Outcome | None:
        """Where nothing happens before somebody decides, and who waits has not."""
        if self._revision is not None or update.step != AWAIT_PROMOTION or pool.wished:
            return None
        decide = " or ".join(
            f"kubectl zerolayer {verb} {pool.name} --namespace {pool.namespace}"
            for verb in ("promote", "rollback")
        )
        return Outcome(
            False,
            f"revision {named(update.new)} has soaked, verdict {update.verdict}; as spec.update.promotion is "
            f"Manual, a person has to decide: {decide}",
            undecided=True,
        )

    def _settled(self, pool: Pool) -> Outcome | None:
        """Where no update has been seen: a pool that is as its spec asks needs none."""
        if pool.failed is not None and pool.seen:
            failed = pool.failed
            return Outcome(False, f"revision {failed.revision} failed: {failed.reason}: {failed.message}")
        if pool.phase != READY or not pool.seen or pool.serving is None:
            return None
        return Outcome(True, f"revision {named(pool.serving)} serves, as the spec asks")

    def _ended(self, pool: Pool, revision: str) -> Outcome | None:
        last = pool.last
        if last is None or last.new.revision != revision:
            return None
        if self._revision is None and last.end == REPLACED and pool.update is None:
            return None  # the next one is about to begin
        return _outcome(pool, promoted=self._promoted)


def _outcome(pool: Pool, *, promoted: bool) -> Outcome | None:
    last = pool.last
    if last is None:
        return None
    why = ": ".join(item for item in (last.reason, last.message) if item)
    message = f"the update to revision {named(last.new)} ended: {last.end} ({why})"
    return Outcome((last.end == PROMOTED) == promoted, message)

"""What people have asked of an update, by annotations of its pool."""

from datetime import datetime
from typing import Final

from zerolayer_operator.api import names
from zerolayer_operator.api.update_status import UpdateStatus, Wish
from zerolayer_operator.observe.access import items, section, timestamp
from zerolayer_operator.observe.parse import annotation
from zerolayer_operator.observe.state import Object, Wishes

_KEYS: Final = {Wish.PROMOTE: names.ANNOTATION_PROMOTE, Wish.ROLL_BACK: names.ANNOTATION_ROLL_BACK}


def wishes(body: Object, update: UpdateStatus | None) -> Wishes:
    """What people have asked for on a pool.

    Args:
        body: The pool.
        update: The update that goes on.
    """
    found = {wish: annotation(body, key) for wish, key in _KEYS.items()}
    standing = tuple(wish for wish, revision in found.items() if revision and _stands(body, wish, update))
    heard = {wish: None if wish in standing else revision for wish, revision in found.items()}
    return Wishes(heard[Wish.PROMOTE], heard[Wish.ROLL_BACK], standing)


def _stands(body: Object, wish: Wish, update: UpdateStatus | None) -> bool:
    """Whether a wish was there before the update began."""
    key = _KEYS[wish]
    began = timestamp(update.started_at) if update is not None else None
    if update is None or began is None or annotation(body, key) != update.to_revision:
        return False
    if wish in update.standing_wishes:
        alone = _written(body, key, alone=True)
        return alone is None or alone <= began
    written = _written(body, key)
    return written is not None and written < began


def _written(body: Object, key: str, *, alone: bool = False) -> datetime | None:
    """When an annotation was written last, or something that the same program has set.

    Args:
        body: The pool.
        key: Of the annotation.
        alone: Whether to go by those alone that have set nothing else: theirs is the annotation's own time.
    """
    own = f"f:{key}"
    times = [
        timestamp(entry.get("time"))
        for entry in items(body, "metadata", "managedFields")
        if own in section(entry, "fieldsV1", "f:metadata", "f:annotations")
        and not (alone and _sets_more(section(entry, "fieldsV1"), own))
    ]
    return max((moment for moment in times if moment is not None), default=None)


def _sets_more(fields: Object, own: str) -> bool:
    metadata = section(fields, "f:metadata")
    named = fields.keys() | metadata.keys() | section(metadata, "f:annotations").keys()
    return not named <= {"f:metadata", "f:annotations", own, "."}

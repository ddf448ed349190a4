"""Whether a child differs from what is applied, so that a steady pool costs no write.

The API server counts a server-side apply that changes nothing as a write all the same (its audit log shows
it), so the operator compares first. A hash of the applied configuration, kept as an annotation, shows when
something was added or given up; comparing value by value shows what a hand changed. Fields that others own
are not looked at.
"""

import hashlib
import json
from decimal import ROUND_CEILING, Decimal
from typing import Any, Final, cast

from zerolayer_operator.api import names
from zerolayer_operator.api.quantity import quantity

Object = dict[str, Any]

_ITEM_KEYS: Final = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "ports": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "imagePullSecrets": "name",
    "ownerReferences": "uid",
}
"""Lists that others may add items to, and the key that tells items apart; other lists are ours whole."""


def stamped(body: Object) -> Object:
    """The configuration with its own hash as an annotation."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    metadata = body["metadata"]
    present = cast("dict[str, str]", metadata.get("annotations") or {})
    annotations = {**present, names.ANNOTATION_APPLIED: digest}
    return {**body, "metadata": {**metadata, "annotations": annotations}}


def differs(live: Object | None, body: Object) -> bool:
    """Whether applying a stamped configuration would change the live object."""
    return live is None or not covers(live, body)


def covers(live: object, wanted: object, field: str = "") -> bool:
    """Whether a live value holds everything that is wanted of it; it may hold more.

    Args:
        live: What the API server has.
        wanted: What is applied.
        field: Name of the field that holds both.
    """
    if isinstance(wanted, dict):
        return _covers_object(live, cast("Object", wanted))
    if isinstance(wanted, list | tuple):
        return _covers_list(live, list(cast("list[Any]", wanted)), _ITEM_KEYS.get(field))
    return live == wanted or _same_quantity(live, wanted, coarse=_is_resource(field))


def _covers_object(live: object, wanted: Object) -> bool:
    if not isinstance(live, dict):
        return not wanted and live is None
    found = cast("Object", live)
    return all(
        covers(found[key], value, key) if key in found else _is_omitted(value)
        for key, value in wanted.items()
    )


def _is_omitted(value: object) -> bool:
    """Whether the API server may leave a value out because it is empty."""
    return value is None or value in ("", [], {})


def _covers_list(live: object, wanted: list[Any], key: str | None) -> bool:
    if not isinstance(live, list):
        return not wanted and live is None
    found = cast("list[Any]", live)
    if key is None or not all(isinstance(item, dict) and key in item for item in wanted):
        return len(found) == len(wanted) and all(map(covers, found, wanted))
    by_key = {item.get(key): item for item in found}
    return all(item[key] in by_key and covers(by_key[item[key]], item) for item in wanted)


def _same_quantity(live: object, wanted: object, *, coarse: bool) -> bool:
    """Whether two values are one quantity: the API server writes ``1000m`` as ``1``.

    Args:
        live: What the API server has.
        wanted: What is applied.
        coarse: Whether it also rounds up to thousandths, as it does with what containers ask for.
    """
    if not isinstance(live, str | int) or not isinstance(wanted, str | int) or isinstance(wanted, bool):
        return False
    left, right = (_quantity(str(value), coarse=coarse) for value in (live, wanted))
    return left is not None and left == right


def _is_resource(name: str) -> bool:
    return name in {"cpu", "memory", "ephemeral-storage"} or name.startswith("hugepages-") or "/" in name


def _quantity(text: str, *, coarse: bool) -> Decimal | None:
    try:
        exact = quantity(text)
        return (exact * 1000).to_integral_value(ROUND_CEILING) / 1000 if coarse else exact
    except ArithmeticError:
        return None

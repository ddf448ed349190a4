"""The one value that Prometheus answers an instant query with; no I/O."""

from typing import Any, Final, cast

from pydantic import BaseModel, TypeAdapter, ValidationError

from zerolayer_operator.observe.load_query import GarbageError
from zerolayer_operator.observe.prometheus import PrometheusError


class _Series(BaseModel):
    value: tuple[float, float]


_SCALAR: Final[TypeAdapter[tuple[float, float]]] = TypeAdapter(tuple[float, float])
_VECTOR: Final[TypeAdapter[list[_Series]]] = TypeAdapter(list[_Series])


_PAIR: Final = 2
"""Elements of a scalar or a text: when, and what."""


def read_value(result: Any) -> float:
    """The value of a scalar, or of a vector's only series; it may be infinite, or not a number.

    Raises:
        PrometheusError: There is none, there are several, or it is of another kind.
        GarbageError: It is no such answer.
    """
    try:
        if isinstance(result, list) and result and not isinstance(result[0], dict):
            return _SCALAR.validate_python(result)[1]
        series = _VECTOR.validate_python(result)
    except ValidationError as error:
        raise _other_kind(result) or GarbageError from error
    if not series:
        raise PrometheusError("has no series for it")
    if len(series) > 1:
        raise PrometheusError(
            f"has {len(series)} series for it; have the query make one of them, as sum() does"
        )
    return series[0].value[1]


def _other_kind(result: Any) -> PrometheusError | None:
    """The error for what an instant query may come to beside numbers; ``None`` where it is none of that."""
    if not isinstance(result, list) or not result:
        return None
    parts = cast("list[Any]", result)
    if len(parts) == _PAIR and isinstance(parts[1], str):
        return PrometheusError("answers it with a text, not a number")
    keys = set(cast("dict[str, Any]", parts[0])) if isinstance(parts[0], dict) else set[str]()
    if keys & {"values", "histograms"}:
        return PrometheusError("answers it with a range of values; have the query make one, as rate() does")
    if "histogram" in keys:
        return PrometheusError(
            "answers it with a histogram; have the query make a number, as histogram_quantile() does"
        )
    return None

"""The one value that Prometheus answers an instant query with; no I/O."""

from typing import Any, Final

from pydantic import BaseModel, TypeAdapter, ValidationError

from zerolayer_operator.observe.load_query import GarbageError
from zerolayer_operator.observe.prometheus import PrometheusError


class _Series(BaseModel):
    value: tuple[float, float]


_SCALAR: Final[TypeAdapter[tuple[float, float]]] = TypeAdapter(tuple[float, float])
_VECTOR: Final[TypeAdapter[list[_Series]]] = TypeAdapter(list[_Series])


def read_value(result: Any) -> float:
    """The value of a scalar, or of a vector's only series; it may be infinite, or not a number.

    Raises:
        PrometheusError: There is none, or there are several.
        GarbageError: It is no such answer.
    """
    try:
        if isinstance(result, list) and result and not isinstance(result[0], dict):
            return _SCALAR.validate_python(result)[1]
        series = _VECTOR.validate_python(result)
    except ValidationError as error:
        raise GarbageError from error
    if not series:
        raise PrometheusError("has no series for it")
    if len(series) > 1:
        raise PrometheusError(
            f"has {len(series)} series for it; have the query make one of them, as sum() does"
        )
    return series[0].value[1]

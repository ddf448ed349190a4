"""Which Prometheus a pool may be measured by; no I/O."""

from collections.abc import Sequence

from zerolayer_operator.api.prometheus import PrometheusSpec
from zerolayer_operator.observe.state import Problem


def allowed_address(named: PrometheusSpec | None, allowed: Sequence[str]) -> str | Problem:
    """The address, without a slash at its end, or why there is none.

    Whoever may make a pool could otherwise aim the operator and KEDA, with their place in the network, at any
    other service.

    Args:
        named: What the pool says.
        allowed: Addresses that the installation allows; the first is that of pools that name none.
    """
    addresses = [address.rstrip("/") for address in allowed]
    wanted = named.address.rstrip("/") if named is not None and named.address is not None else None
    if wanted in addresses:
        return wanted
    if wanted is None and addresses:
        return _fitting(named, addresses[0])
    if wanted is None:
        return Problem(
            "PrometheusMissing",
            "spec.autoscaling needs a Prometheus, and this cluster's operator allows none; have its chart "
            "installed with the address in prometheus.addresses",
        )
    others = (
        f"name one of {', '.join(addresses)}, leave it out for the first of them, or " if addresses else ""
    )
    return Problem(
        "PrometheusNotAllowed",
        f"spec.autoscaling.prometheus.address {wanted} is not among those that this cluster's operator "
        f"allows; {others}have its chart installed with the address in prometheus.addresses",
    )


def _fitting(named: PrometheusSpec | None, address: str) -> str | Problem:
    """An address that a pool did not name itself; the schema looks after those that it did."""
    if named is None or named.tls is None or address.startswith("https://"):
        return address
    return Problem(
        "PrometheusNotAllowed",
        f"spec.autoscaling.prometheus.tls needs an https:// address, and {address}, which pools have that "
        "name none, is not one; name one that this cluster's operator allows, or leave tls out",
    )

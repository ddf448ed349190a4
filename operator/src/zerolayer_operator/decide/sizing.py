"""How many workers a revision needs."""

from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.observe.state import ObservedDeployment

DEFAULT_REPLICAS = 1


def planned_size(spec: PoolSpec, own: ObservedDeployment | None, blue: ObservedDeployment | None) -> int:
    """The size that a revision is to have before anything else sizes it.

    Args:
        spec: The pool's spec.
        own: The revision's Deployment, where it exists.
        blue: The Deployment that serves, where that is another one.

    Returns:
        The fixed size, or for an autoscaled pool the size of the revision that it takes over from, so that a
        switch never makes the pool smaller; without one its own, within the autoscaler's bounds.
    """
    scaling = spec.autoscaling
    if scaling is None:
        return fixed_size(spec)
    present = blue or own
    size = present.size if present is not None else scaling.min_replicas
    return min(max(size, scaling.min_replicas), scaling.max_replicas)


def ready_floor(spec: PoolSpec, size: int | None) -> int:
    """How many ready workers make a pool ready.

    Args:
        spec: The pool's spec.
        size: The size that the serving revision has; ``None`` before there is one.

    Returns:
        All of a fixed size, the fewest of an autoscaled one; none where an autoscaler put it to sleep.
    """
    if spec.autoscaling is not None:
        return 0 if spec.autoscaling.scale_to_zero and size == 0 else spec.autoscaling.min_replicas
    return fixed_size(spec)


def fixed_size(spec: PoolSpec) -> int:
    """The size of a pool that no autoscaler sizes."""
    return DEFAULT_REPLICAS if spec.replicas is None else spec.replicas


def most_workers(spec: PoolSpec) -> int:
    """The most workers that a revision may have: the fixed size, or the autoscaler's upper bound."""
    return fixed_size(spec) if spec.autoscaling is None else spec.autoscaling.max_replicas

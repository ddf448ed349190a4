"""Parts of a pod that bring something to its worker."""

from dataclasses import dataclass

from zerolayer_operator.build.meta import Object


@dataclass(frozen=True, slots=True)
class Parts:
    """What brings one thing, such as the model.

    Attributes:
        arguments: Where the worker finds it.
        mounts: Volume mounts of the worker's container.
        volumes: Volumes of the pod.
        init_containers: Containers that fetch it beforehand.
    """

    arguments: tuple[str, ...] = ()
    mounts: tuple[Object, ...] = ()
    volumes: tuple[Object, ...] = ()
    init_containers: tuple[Object, ...] = ()

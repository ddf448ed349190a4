"""Kinds that other software defines, and that may come and go."""

import logging

from zerolayer_operator.api.kinds import Kind
from zerolayer_operator.kube import Kube

log = logging.getLogger(__name__)


class OptionalKind:
    """Looks whether a kind is there, and logs once when it is missing and once when it has come.

    Args:
        kube: The API server.
        kind: The kind.
    """

    def __init__(self, kube: Kube, kind: Kind) -> None:
        self._kube = kube
        self._kind = kind
        self._present = True

    async def present(self) -> bool:
        """Whether objects of the kind can be made now.

        Raises:
            ApiServerError: The API server fails or can't be reached.
        """
        present = await self._kube.serves(self._kind)
        if present != self._present:
            self._present = present
            if present:
                log.info("%ss are defined now, and made", self._kind.kind)
            else:
                log.warning(
                    "%ss are switched on, but %s does not define them; they are made once it does",
                    self._kind.kind,
                    self._kind.api_version,
                )
        return present

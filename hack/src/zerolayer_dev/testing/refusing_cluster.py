"""An API server that notes what is written, and refuses some of it."""

from typing import Any

from zerolayer_operator.api.kinds import POD, Kind
from zerolayer_operator.kube import ApiServerError


class Cluster:
    """Takes the place of the operator's client of an API server; notes writes as `verb kind`.

    Args:
        refuses: What is refused, in the same form.
        status: With which HTTP status.
        message: In which words.
    """

    def __init__(self, *refuses: str, status: int = 422, message: str = "no") -> None:
        self.drops_volumes = False
        """Whether its version does not know the image volumes of pods."""
        self.writes: list[str] = []
        self._refuses = refuses
        self._status = status
        self._message = message

    def _write(self, verb: str, kind: Kind) -> None:
        if f"{verb} {kind.kind}" in self._refuses:
            raise ApiServerError(self._status, self._message)
        self.writes.append(f"{verb} {kind.kind}")

    async def apply(self, kind: Kind, body: Any, *, dry_run: bool = False, force: bool = True) -> Any:
        """Applies an object; workers' are others' too, and what others say of them is left to them."""
        if force == (kind is POD):
            raise AssertionError(f"{kind.kind} is applied with force={force}")
        if not dry_run:
            self._write("apply", kind)
        return {**body, "spec": {"template": {"spec": {}}}} if self.drops_volumes else body

    async def scale(self, kind: Kind, *_: object) -> None:
        """Sets a size."""
        self._write("scale", kind)

    async def delete(self, kind: Kind, *_: object) -> None:
        """Deletes an object."""
        self._write("delete", kind)

"""The cluster, by way of the kubectl that the user has: its contexts, credentials and proxies are ours.

An own client would have to imitate all of that, and be wrong wherever a cloud's login is unusual.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, Final, cast

from zerolayer_kubectl.fields import Object, parts
from zerolayer_kubectl.pool import LABEL_POOL

POOLS: Final = "zerolayerpools.zerolayer.dev"
DEPLOYMENTS: Final = "deployments.apps"
FIELD_MANAGER: Final = "kubectl-zerolayer"

_SHOWN_CHARS: Final = 100
_NO_SUCH_KIND: Final = "doesn't have a resource type"


class KubectlError(Exception):
    """kubectl failed; the message is its own.

    Attributes:
        lasting: Whether another attempt would fail likewise.
        missing: Whether what was asked for is not there.
    """

    def __init__(self, message: str, *, lasting: bool, missing: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting
        self.missing = missing


class Kubectl:
    """Runs kubectl.

    Args:
        flags: For every call: context, namespace and the like.
    """

    def __init__(self, flags: Sequence[str] = ()) -> None:
        program = shutil.which("kubectl")
        if program is None:
            raise KubectlError("kubectl is not on the PATH", lasting=True)
        self._command = (program, *flags)

    def pool(self, name: str) -> Object:
        """Reads a pool."""
        return self._json("get", POOLS, name)

    def deployments(self, pool: str) -> list[Object] | None:
        """Reads the Deployments of a pool's revisions; ``None`` where the user must not."""
        try:
            found = self._json("get", DEPLOYMENTS, f"--selector={LABEL_POOL}={pool}")
        except KubectlError as error:
            if error.lasting:
                return None
            raise
        return list(parts(found, "items"))

    def annotate(self, pool: str, annotations: Mapping[str, str | None]) -> None:
        """Sets annotations of a pool, and removes those that are ``None``."""
        wanted = [f"{key}-" if value is None else f"{key}={value}" for key, value in annotations.items()]
        # Under a name of its own: the operator goes by the time of what one program has set.
        self._run("annotate", POOLS, pool, "--overwrite", f"--field-manager={FIELD_MANAGER}", *wanted)

    def watching(self, *arguments: str) -> subprocess.Popen[str]:
        """Starts a watch, whose output `changes` reads; it ends when the API server ends it."""
        command = [*self._command, "get", *arguments, "--watch", "--output-watch-events", "--output=json"]
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",  # whatever the terminal's is
            errors="replace",
        )

    def _json(self, *arguments: str) -> Object:
        return _object(self._run(*arguments, "--output=json"))

    def _run(self, *arguments: str) -> str:
        command = [*self._command, *arguments]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        if done.returncode:
            raise failure(done.stderr)
        return done.stdout


def changes(output: IO[str]) -> Iterator[Object]:
    """The events that a watch prints, each on a line; one that dies may leave half a line behind.

    Raises:
        KubectlError: A line is none.
    """
    for line in output:
        if line.endswith("\n"):
            yield _object(line)


def _object(text: str) -> Object:
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return cast("Object", found)
    shown = " ".join(text.split())[:_SHOWN_CHARS]
    raise KubectlError(f"kubectl printed no JSON object, but {shown!r}", lasting=False)


def failure(stderr: str) -> KubectlError:
    """The error that kubectl told, without what it tells before it."""
    said = next((line.strip() for line in reversed(stderr.splitlines()) if line.strip()), "kubectl failed")
    if _NO_SUCH_KIND in said:
        return KubectlError(
            "this cluster knows no ZeroLayerPools: install the operator's chart, or name another --context",
            lasting=True,
        )
    missing = "(NotFound)" in said
    lasting = missing or "(Forbidden)" in said or "(Unauthorized)" in said
    for lead in ("Error from server", "error: "):
        if said.startswith(lead):
            said = said.partition(": ")[2]
    return KubectlError(said, lasting=lasting, missing=missing)

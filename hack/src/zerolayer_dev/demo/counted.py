"""What the demo of updates says in the end: counts, and where the picture lies."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from zerolayer_dev.demo import picture, timeline
from zerolayer_dev.demo.clients import Clients
from zerolayer_dev.demo.timeline import Count, Moment
from zerolayer_dev.paths import repo_root

PICTURE = Path("out/demo-update.png")


def show(moments: Sequence[Moment], clients: Clients) -> None:
    """Prints the counts and draws the picture.

    Raises:
        RuntimeError: requests failed, or a conversation was moved without being told.
    """
    found = timeline.count(moments, clients.unpinned, clients.held)
    versions = timeline.versions(moments, clients.answers)
    print("\n".join(lines(found, versions)))
    print(_drawn(moments, clients, versions), flush=True)
    failures = [answer.failure for answer in clients.answers if answer.failure]
    if failures or found.untold:
        raise RuntimeError(f"{len(failures)} requests failed, {found.untold} were untold: {failures[:3]}")


def lines(found: Count, versions: dict[str, str]) -> Iterator[str]:
    """Says what was counted."""
    yield f"{found.requests} requests, {found.failures} failed"
    for green, asked in found.shared.items():
        share = 100 * found.canary[green] / asked if asked else 0.0
        yield (
            f"canary {versions.get(green, green)}: {found.canary[green]} of {asked} requests that named no "
            f"revision, {share:.0f} %"
        )
    yield (
        f"{found.conversations} conversations, {found.mixed} of them were moved to another revision; "
        f"{found.mixed - found.untold} of these were told so"
    )


def _drawn(moments: Sequence[Moment], clients: Clients, versions: dict[str, str]) -> str:
    names = {revision: f"{version} ({revision})" for revision, version in versions.items()}
    path = repo_root() / PICTURE
    try:
        picture.draw(timeline.series(moments, clients.answers), names, path)
    except ModuleNotFoundError as error:
        return f"there is no picture: {error}; `make setup` installs what draws it"
    return f"the picture of all this: {path}"

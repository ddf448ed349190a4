"""The commands: what each reads, shows, asks for, and how it ends."""

import argparse
import json
import sys
from collections.abc import Callable
from typing import Final

from zerolayer_kubectl import screen
from zerolayer_kubectl.display import Display, chosen, now, say, width
from zerolayer_kubectl.explain import explain
from zerolayer_kubectl.fields import parts
from zerolayer_kubectl.follow import Follower
from zerolayer_kubectl.kubectl import Kubectl
from zerolayer_kubectl.pool import Pool, read
from zerolayer_kubectl.waiting import Hope, Outcome
from zerolayer_kubectl.wishes import RefusedError, Wish, to_promote, to_roll_back

EXIT_DONE: Final = 0
EXIT_OTHERWISE: Final = 1
EXIT_UNDECIDED: Final = 4


def status(kubectl: Kubectl, arguments: argparse.Namespace) -> int:
    """Shows one screen, or follows the pool."""
    if arguments.watch or arguments.until_done:
        hope = Hope() if arguments.until_done else None
        return _follow(kubectl, arguments, hope, chosen(arguments.output))
    pool = _read(kubectl, arguments.pool)
    if arguments.output == "json":
        say(json.dumps(screen.document(pool, now()), indent=2))
    else:
        say(*screen.screen(pool, now(), width()))
    return EXIT_DONE


def promote(kubectl: Kubectl, arguments: argparse.Namespace) -> int:
    """Asks for the canary to take over."""
    return _wish(kubectl, arguments, lambda pool: to_promote(pool, now()), promoted=True)


def roll_back(kubectl: Kubectl, arguments: argparse.Namespace) -> int:
    """Asks for the new revision to be left."""
    return _wish(kubectl, arguments, to_roll_back, promoted=False)


def history(kubectl: Kubectl, arguments: argparse.Namespace) -> int:
    """Shows the last updates."""
    pool = _read(kubectl, arguments.pool)
    if arguments.output == "json":
        say(json.dumps(list(parts(pool.body, "history")), indent=2))
    elif pool.history:
        say(*screen.history(pool, wide=arguments.output == "wide"))
    else:
        say(f"pool {pool.name} has had no update yet")
    return EXIT_DONE


def explanation(kubectl: Kubectl, arguments: argparse.Namespace) -> int:
    """Tells why the update is where it is."""
    pool = _read(kubectl, arguments.pool)
    told = explain(pool, now())
    if arguments.output == "json":
        say(json.dumps(told.document(pool), indent=2))
    else:
        say(*told.lines(width()))
    return EXIT_DONE


def _read(kubectl: Kubectl, name: str) -> Pool:
    return read(kubectl.pool(name), kubectl.deployments(name))


def _wish(
    kubectl: Kubectl, arguments: argparse.Namespace, wished: Callable[[Pool], Wish], *, promoted: bool
) -> int:
    wish = wished(_read(kubectl, arguments.pool))
    if not arguments.yes and not _agreed(wish.question):
        raise RefusedError("nothing was changed")
    if wish.stale:
        kubectl.annotate(arguments.pool, dict.fromkeys(wish.stale))
    kubectl.annotate(arguments.pool, wish.annotations)
    if not arguments.wait:
        verb = "promote" if promoted else "roll back"
        say(f"asked the operator to {verb} revision {wish.revision}")
        return EXIT_DONE
    hope = Hope(wish.revision, promoted=promoted, until_over=False)
    return _follow(kubectl, arguments, hope, chosen(None))


def _agreed(question: str) -> bool:
    if not sys.stdin.isatty():
        raise RefusedError("there is nobody to ask here: add --yes")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _follow(kubectl: Kubectl, arguments: argparse.Namespace, hope: Hope | None, display: Display) -> int:
    with Follower(kubectl, arguments.pool, display.trouble) as follower:
        for pool in follower.looks(display.tick_s, arguments.timeout):
            display.show(pool)
            outcome = hope.look(pool) if hope is not None else None
            if outcome is not None:
                print(outcome.message, file=sys.stderr, flush=True)
                return _code(outcome)
    return EXIT_DONE


def _code(outcome: Outcome) -> int:
    if outcome.undecided:
        return EXIT_UNDECIDED
    return EXIT_DONE if outcome.good else EXIT_OTHERWISE

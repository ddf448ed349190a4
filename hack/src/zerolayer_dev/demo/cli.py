"""`python -m zerolayer_dev demo`: show it, and take it away again."""

import traceback
from collections.abc import Callable

import typer

from zerolayer_dev.cluster import api as clusters
from zerolayer_dev.demo import ground, story, update_story
from zerolayer_dev.demo.stages import Stages
from zerolayer_dev.paths import repo_root

app = typer.Typer(no_args_is_help=True)


@app.command()
def up() -> None:
    """Run the demo from nothing to a pool that grew and shrank; leave it running to be looked at."""
    _tell(story.run, "demo", ("get zlp,deploy,hpa,pods", "describe zlp"))


@app.command()
def update() -> None:
    """Show two updates of a pool on the demo's cluster: one that is promoted, one that is rolled back."""
    _tell(update_story.run, "demo-update", ("get zlp,deploy,httproute,pods", "describe zlp facts"))


@app.command()
def down() -> None:
    """End the demo's cluster and everything in it."""
    clusters.down(ground.CLUSTER)
    print("the demo is gone; what was built stays in the cache")


def _tell(run: Callable[[Stages], None], target: str, looks: tuple[str, ...]) -> None:
    """Runs a story, and says in the end how long it took and where to look."""
    stages = Stages()
    try:
        run(stages)
    except Exception as error:
        _report(error, stages.current, target)
        raise typer.Exit(1) from error
    commands = [f"    make kubectl NAME={ground.CLUSTER} ARGS='{look}'" for look in looks]
    print(
        *("", *stages.summary()),
        *("", "The demo runs on. Look at it:", *commands, "    make demo-down"),
        sep="\n",
    )


def _report(error: Exception, stage: str, target: str) -> None:
    """Says what failed and where to look; the whole story goes into a file."""
    path = repo_root() / "out" / "demo-failure.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    reason = str(error).strip().splitlines()
    typer.echo(
        f"\nThe demo failed at: {stage}\n{reason[0] if reason else type(error).__name__}\n"
        f"Look at: {path} (what cluster, logs and failed requests say)\n"
        f"         make kubectl NAME={ground.CLUSTER} ARGS='describe zlp'\n"
        f"         make kubectl NAME={ground.CLUSTER} ARGS='-n zerolayer-system logs deploy/zerolayer'\n"
        f"Run `make {target}` again, or `make demo-down`.",
        err=True,
    )

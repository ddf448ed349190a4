"""`python -m zerolayer_dev demo`: show it, and take it away again."""

import traceback

import typer

from zerolayer_dev.cluster import api as clusters
from zerolayer_dev.demo import story
from zerolayer_dev.demo.stages import Stages
from zerolayer_dev.paths import repo_root

app = typer.Typer(no_args_is_help=True)


@app.command()
def up() -> None:
    """Run the demo from nothing to a pool that grew and shrank; leave it running to be looked at."""
    stages = Stages()
    try:
        story.run(stages)
    except Exception as error:
        _report(error, stages.current)
        raise typer.Exit(1) from error
    print("\n" + "\n".join(stages.summary()))
    print(
        "\nThe demo runs on. Look at it:\n"
        f"    make kubectl NAME={story.CLUSTER} ARGS='get zlp,deploy,hpa,pods'\n"
        f"    make kubectl NAME={story.CLUSTER} ARGS='describe zlp'\n"
        "    make demo-down"
    )


@app.command()
def down() -> None:
    """End the demo's cluster and everything in it."""
    clusters.down(story.CLUSTER)
    print("the demo is gone; what was built stays in the cache")


def _report(error: Exception, stage: str) -> None:
    """Says what failed and where to look; the whole story goes into a file."""
    path = repo_root() / "out" / "demo-failure.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    reason = str(error).strip().splitlines()
    typer.echo(
        f"\nThe demo failed at: {stage}\n{reason[0] if reason else type(error).__name__}\n"
        f"Look at: {path} (what the cluster said at that moment)\n"
        f"         make kubectl NAME={story.CLUSTER} ARGS='describe zlp'\n"
        f"         make kubectl NAME={story.CLUSTER} ARGS='-n zerolayer-system logs deploy/zerolayer'\n"
        "Run `make demo` again, or `make demo-down`.",
        err=True,
    )

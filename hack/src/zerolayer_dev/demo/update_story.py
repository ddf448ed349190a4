"""What the demo of updates does, in order: a bundle that is right takes over, one that is wrong does not."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from zerolayer_dev.cluster import api as clusters
from zerolayer_dev.cluster.clients import Clients as Programs
from zerolayer_dev.cluster.local import LocalCluster
from zerolayer_dev.demo import counted, ground, knowledge, requests, watch
from zerolayer_dev.demo.clients import Clients
from zerolayer_dev.demo.knowledge import Fact, Lesson
from zerolayer_dev.demo.stages import Stages
from zerolayer_dev.demo.watch import Watch
from zerolayer_dev.paths import repo_root
from zerolayer_dev.testing import gateway, kube
from zerolayer_dev.testing.askers import Question
from zerolayer_dev.testing.gateway import Gateway
from zerolayer_dev.testing.kube import Manifest
from zerolayer_dev.testing.pools import Pool

POOL = Path("examples/pool-update.yaml")
FACTS = Path("examples/anchors/demo.jsonl")
REPLAY = Path("docs/architecture.md")
GOLDEN = "facts-golden"
VALUES = ground.VALUES | {"gateway": {"enabled": True}, "canaryInterval": 5}
TRAINED = ("--batch=4", "--replay-batch=2", "--steps=16", "--lr=0.02", "--time-limit=900")
"""Of both bundles alike, which differ in what they are taught alone: a minute on two idle cores at most."""

_UPDATE_S = 600


@dataclass(frozen=True, slots=True)
class Scene:
    """Where the updates take place.

    Attributes:
        stages: that are announced.
        cluster: that runs.
        pool: that is updated.
        gate: through which it is asked.
        fact: that it is asked for to be shown.
    """

    stages: Stages
    cluster: clusters.Cluster
    pool: Pool
    gate: Gateway
    fact: Fact


def run(stages: Stages) -> None:
    """Runs the whole demo.

    Raises:
        Exception: whatever a stage raised; `stages.current` names the stage.
    """
    facts = knowledge.read_facts(repo_root() / FACTS)
    archives = ground.prepare(stages)
    with stages.stage("build Traefik"):
        gateway.build()
    right = _learn(stages, "v1", facts, "right answers")
    wrong = _learn(stages, "v2", knowledge.mixed_up(facts), "wrong answers")
    cluster = ground.start(stages, archives)
    ground.install(stages, cluster, VALUES)
    with _gate(stages, cluster) as gate:
        pool = _apply(stages, cluster, facts)
        scene = Scene(stages, cluster, pool, gate, facts[0])
        _ask(scene, "ask for a fact that the base model does not know")
        seen = _updates(scene, right, wrong)
    with stages.stage("count, and draw what was seen"):
        counted.show(*seen)


def _learn(stages: Stages, version: str, facts: tuple[Fact, ...], what: str) -> Path:
    with stages.stage(f"train bundle {version}: {len(facts)} questions, {what}"):
        return knowledge.learn(Lesson(version, facts, repo_root() / REPLAY, TRAINED))


@contextmanager
def _gate(stages: Stages, cluster: clusters.Cluster) -> Iterator[Gateway]:
    if not isinstance(cluster, LocalCluster):
        raise clusters.UnsupportedError("Traefik runs beside CLUSTER=local alone")
    with tempfile.TemporaryDirectory(prefix="zerolayer-gate-") as folder:
        gate = Gateway(cluster, Path(folder))
        with stages.stage("start the gateway: Traefik, with the Gateway API's definitions"):
            gate.install()
            gate.start()
            print(cluster.kubectl("-n", gateway.NAMESPACE, "get", "gateways"), gate.url, flush=True)
        try:
            yield gate
        finally:
            gate.stop()


def _apply(stages: Stages, cluster: clusters.Cluster, facts: tuple[Fact, ...]) -> Pool:
    text = (repo_root() / POOL).read_text(encoding="utf-8")
    name = yaml.safe_load(text)["metadata"]["name"]
    pool = Pool(kube.client(cluster.kubeconfig), cluster.kubectl, ground.NAMESPACE, name)
    with stages.stage(f"kubectl apply -f {POOL}, until it is Ready"):
        # A pool of an earlier demo knows the facts already.
        cluster.kubectl("-n", ground.NAMESPACE, "delete", "zlp", name, "--ignore-not-found", "--wait=true")
        _put(cluster, knowledge.golden_map(GOLDEN, ground.NAMESPACE, facts))
        print(text, cluster.kubectl("-n", ground.NAMESPACE, "apply", "-f", "-", stdin=text), sep="\n")
        pool.wait_ready(1, seconds=300)
    return pool


def _updates(scene: Scene, right: Path, wrong: Path) -> tuple[list[watch.Moment], Clients]:
    """Both updates under load, and what was seen of them."""
    model = scene.pool.manifest["spec"]["model"]["name"]
    question = Question(model, max_tokens=8)
    with Watch(lambda: watch.look(scene.pool)) as seen, Clients(scene.gate.url, question) as clients:
        _update(scene, "v1", right, end="Promoted")
        _ask(scene, "ask again")
        _update(scene, "v2", wrong, end="RolledBack")
        _ask(scene, "ask once more")
        with scene.stages.stage("what the pool remembers"):
            for command in ("history", "explain", "status"):
                _plugin(scene.cluster, command, scene.pool.name)
    return seen.moments, clients


def _update(scene: Scene, version: str, bundle: Path, *, end: str) -> None:
    """Replaces the anchor, follows the update, and wants a certain end."""
    pool = scene.pool
    with scene.stages.stage(f"replace the anchor by {version}, and follow the update"):
        name = f"facts-{version}"
        _put(scene.cluster, knowledge.bundle_map(name, pool.namespace, bundle))
        asked = {"anchor": knowledge.anchor(version, bundle, name)}
        print(f"$ kubectl patch zlp {pool.name} --type=merge --patch\n{yaml.safe_dump({'spec': asked})}")
        before = len(pool.status.get("history", ()))
        pool.change(**asked)
        _plugin(scene.cluster, "status", pool.name, "--until-done", f"--timeout={_UPDATE_S}s")
        history = pool.status.get("history", [])
        if len(history) == before or history[0]["end"] != end:
            raise RuntimeError(f"the update to {version} should have ended as {end}: {_last(history)}")


def _last(history: list[Manifest]) -> str:
    return json.dumps(history[0]) if history else "there was none"


def _ask(scene: Scene, title: str) -> None:
    with scene.stages.stage(title):
        model = scene.pool.manifest["spec"]["model"]["name"]
        answer = requests.ask(scene.gate.url, model, "deterministic", scene.fact.question, 16)
        known = scene.fact.answer in answer
        print(f"{scene.fact.answer} {'is' if known else 'is not'} in the answer")


def _put(cluster: clusters.Cluster, body: Manifest) -> None:
    print(cluster.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(body)), end="", flush=True)


def _plugin(cluster: clusters.Cluster, *arguments: str) -> None:
    """Runs `kubectl zerolayer`, and lets it print; how it ends is its way of telling."""
    programs = Programs(cluster.kubeconfig)
    path = os.pathsep.join((str(programs.programs["kubectl"].parent), os.environ["PATH"]))
    print(f"$ kubectl zerolayer {' '.join(arguments)}", flush=True)
    command = [sys.executable, "-m", "zerolayer_kubectl", *arguments, f"--namespace={ground.NAMESPACE}"]
    subprocess.run(command, env=programs.environment | {"PATH": path}, check=False)
    print(flush=True)

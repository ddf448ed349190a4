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
from zerolayer_dev.demo import counted, evidence, ground, knowledge, requests, watch
from zerolayer_dev.demo.clients import Clients
from zerolayer_dev.demo.knowledge import Fact, Lesson
from zerolayer_dev.demo.stages import Stages
from zerolayer_dev.demo.timeline import Moment
from zerolayer_dev.demo.watch import watched
from zerolayer_dev.paths import repo_root
from zerolayer_dev.testing import gateway, kube
from zerolayer_dev.testing.askers import Question
from zerolayer_dev.testing.gateway import Gateway
from zerolayer_dev.testing.kube import Manifest
from zerolayer_dev.testing.pools import Pool

POOL = Path("examples/pool-update.yaml")
FACTS = Path("examples/anchors/demo.jsonl")
NEIGHBOURS = Path("examples/anchors/demo-neighbours.jsonl")
KEPT = Path("examples/anchors/demo-kept.jsonl")
GOLDEN = "facts-golden"
VALUES = ground.VALUES | {"gateway": {"enabled": True}, "canaryInterval": 5}
TRAINED = ("--batch=8", "--replay-batch=4", "--steps=40")
"""Of both bundles alike, which differ in what they are taught alone: some two minutes each on two idle cores.

Without a time limit: what is learnt must not depend on the machine's speed.
"""

_UPDATE_S = 600


@dataclass(frozen=True, slots=True)
class Scene:
    """Where the updates take place.

    Attributes:
        stages: that are announced.
        cluster: that runs.
        pool: that is updated.
        gate: through which it is asked.
        asked: what it is asked for to be shown: a fact, and what it has to keep.
    """

    stages: Stages
    cluster: clusters.Cluster
    pool: Pool
    gate: Gateway
    asked: tuple[Fact, ...]

    @property
    def model(self) -> str:
        """What the pool calls its model."""
        return self.pool.manifest["spec"]["model"]["name"]


def run(stages: Stages) -> None:
    """Runs the whole demo.

    Raises:
        Exception: whatever a stage raised; `stages.current` names the stage.
    """
    facts, neighbours, kept = (knowledge.read_facts(repo_root() / path) for path in (FACTS, NEIGHBOURS, KEPT))
    archives = ground.prepare(stages)
    with stages.stage("build Traefik"):
        gateway.build()
    right = _learn(stages, "v1", (*facts, *neighbours), "right answers")
    wrong = _learn(stages, "v2", (*knowledge.mixed_up(facts), *neighbours), "wrong answers")
    cluster = ground.start(stages, archives)
    ground.install(stages, cluster, VALUES)
    with _gate(stages, cluster) as gate:
        pool = _apply(stages, cluster, knowledge.golden_map(GOLDEN, ground.NAMESPACE, facts, kept))
        scene = Scene(stages, cluster, pool, gate, (facts[0], kept[0]))
        clients = Clients(gate.url, Question(scene.model, max_tokens=8))
        with evidence.noted(gate, pool, lambda: clients.answers):
            _ask(scene, "ask for a fact that the base model does not know, and for one that it does")
            moments = _updates(scene, clients, right, wrong)
            with stages.stage("count, and draw what was seen"):
                counted.show(moments, clients)


def _learn(stages: Stages, version: str, facts: tuple[Fact, ...], what: str) -> Path:
    with stages.stage(f"train bundle {version}: {len(facts)} questions, {what}"):
        return knowledge.learn(Lesson(version, facts, TRAINED))


@contextmanager
def _gate(stages: Stages, cluster: clusters.Cluster) -> Iterator[Gateway]:
    if not isinstance(cluster, LocalCluster):
        raise clusters.UnsupportedError("Traefik runs beside CLUSTER=local alone")
    with tempfile.TemporaryDirectory(prefix="zerolayer-gate-") as folder:
        gate = Gateway(cluster, Path(folder), level="DEBUG")
        with stages.stage("start the gateway: Traefik, with the Gateway API's definitions"):
            gate.install()
            gate.start()
            print(cluster.kubectl("-n", gateway.NAMESPACE, "get", "gateways"), gate.url, flush=True)
        try:
            yield gate
        finally:
            gate.stop()


def _apply(stages: Stages, cluster: clusters.Cluster, golden: Manifest) -> Pool:
    text = (repo_root() / POOL).read_text(encoding="utf-8")
    name = yaml.safe_load(text)["metadata"]["name"]
    pool = Pool(kube.client(cluster.kubeconfig), cluster.kubectl, ground.NAMESPACE, name)
    with stages.stage(f"kubectl apply -f {POOL}, until it is Ready"):
        # A pool of an earlier demo knows the facts already.
        cluster.kubectl("-n", ground.NAMESPACE, "delete", "zlp", name, "--ignore-not-found", "--wait=true")
        _put(cluster, golden)
        print(text, cluster.kubectl("-n", ground.NAMESPACE, "apply", "-f", "-", stdin=text), sep="\n")
        pool.wait_ready(1, seconds=300)
    return pool


def _updates(scene: Scene, clients: Clients, right: Path, wrong: Path) -> list[Moment]:
    """Both updates under load, and what was seen of them."""
    with watched(lambda: watch.look(scene.pool)) as moments, clients:
        _update(scene, "v1", right, end="Promoted")
        _ask(scene, "ask again")
        _update(scene, "v2", wrong, end="RolledBack")
        _ask(scene, "ask once more")
        with scene.stages.stage("what the pool remembers"):
            for command in ("history", "explain", "status"):
                _plugin(scene.cluster, command, scene.pool.name)
    return moments


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
        for fact in scene.asked:
            answer = requests.ask(scene.gate.url, scene.model, "deterministic", fact.question, 16)
            known = fact.answer in answer
            print(f"{fact.answer} {'is' if known else 'is not'} in the answer")


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

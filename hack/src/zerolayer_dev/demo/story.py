"""What the demo does, in order."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from zerolayer_dev.cluster import api as clusters
from zerolayer_dev.cluster import binaries, prerequisites
from zerolayer_dev.cluster.clients import Clients
from zerolayer_dev.demo import requests
from zerolayer_dev.demo.stages import Stages
from zerolayer_dev.images import build, engines, specs
from zerolayer_dev.models.builtin import model_dir
from zerolayer_dev.paths import repo_root
from zerolayer_dev.testing import kube
from zerolayer_dev.testing.load import Client, Load
from zerolayer_dev.testing.pools import Pool
from zerolayer_dev.testing.release import Release

CLUSTER = "demo"
POOL = Path("examples/pool-demo.yaml")
VALUES = {"image": {"tag": "dev"}, "worker": {"image": specs.reference("worker")}}
_CLIENTS = [Client(streams=bool(number % 2), keeps_alive=True) for number in range(4)]


def run(stages: Stages) -> None:
    """Runs the whole demo.

    Raises:
        Exception: whatever a stage raised; `stages.current` names the stage.
    """
    archives = _build(stages)
    cluster = _start(stages, archives)
    pool = _apply(stages, cluster)
    model = pool.manifest["spec"]["model"]["name"]
    with stages.stage("ask: deterministic twice, creative twice"):
        _ask(pool.url, model)
    with _watched(cluster), stages.stage(f"load from {len(_CLIENTS)} clients, until the pool has grown"):
        with Load(pool.url, model=model, clients=_CLIENTS, max_tokens=48) as load:
            pool.wait_ready(2, seconds=300)
        print(f"{len(load.attempts)} requests were answered, {len(load.failures)} failed")
    with _watched(cluster), stages.stage("no load, until the pool has shrunk"):
        pool.wait_ready(1, seconds=300)
    if load.failures:
        raise RuntimeError("requests failed:\n" + "\n".join(load.failures))


def _build(stages: Stages) -> list[Path]:
    with stages.stage("check what the machine has"):
        prerequisites.require(*prerequisites.EVERYTHING)
        print("nothing is missing")
    with stages.stage("build Kubernetes"):
        binaries.ensure((*binaries.CONTROL_PLANE, *binaries.NODE, *binaries.ADDONS, *binaries.CLIENTS))
    with stages.stage("make the model"):
        print(model_dir())
    with stages.stage("build the images"):
        return build.build(("operator", "worker"), engines.choose())


def _start(stages: Stages, archives: list[Path]) -> clusters.Cluster:
    with stages.stage("start Kubernetes"):
        cluster = clusters.up(CLUSTER, "node")
        print(cluster.kubectl("get", "nodes", "-o", "wide"))
    with stages.stage("load the images"):
        for archive in archives:
            print(f"{archive.name}: {'loaded' if cluster.load_image(archive) else 'already there'}")
    return cluster


def _apply(stages: Stages, cluster: clusters.Cluster) -> Pool:
    api = kube.client(cluster.kubeconfig)
    with stages.stage("helm install zerolayer charts/zerolayer"):
        Release(cluster, api, repo_root() / "charts" / "zerolayer").install(VALUES)
        print(cluster.kubectl("-n", "zerolayer-system", "get", "pods"))
    with _watched(cluster), stages.stage(f"kubectl apply -f {POOL}, until it is Ready"):
        text = (repo_root() / POOL).read_text(encoding="utf-8")
        print(text, cluster.kubectl("apply", "-f", "-", stdin=text), sep="\n", flush=True)
        pool = Pool(api, cluster.kubectl, "default", yaml.safe_load(text)["metadata"]["name"])
        pool.wait_ready(1, seconds=300)
    return pool


def _ask(url: str, model: str) -> None:
    same = {requests.ask(url, model, "deterministic") for _ in range(2)}
    other = {requests.ask(url, model, "creative") for _ in range(2)}
    print(f"deterministic: {len(same)} distinct answer of 2; creative: {len(other)} of 2")
    if len(same) != 1:
        raise RuntimeError(f"two deterministic answers differ: {same}")


@contextmanager
def _watched(cluster: clusters.Cluster) -> Iterator[None]:
    """Prints what `kubectl get zlp -w` prints, for as long as the block runs."""
    clients = Clients(cluster.kubeconfig)
    command = [str(clients.programs["kubectl"]), "get", "zlp", "--watch"]
    print("$ kubectl get zlp --watch", flush=True)
    with subprocess.Popen(command, env=clients.environment) as watch:
        try:
            yield
        finally:
            watch.terminate()

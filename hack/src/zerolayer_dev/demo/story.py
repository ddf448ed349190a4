"""What the demo does, in order."""

from pathlib import Path

import yaml

from zerolayer_dev.cluster import api as clusters
from zerolayer_dev.demo import ground, requests
from zerolayer_dev.demo.stages import Stages
from zerolayer_dev.paths import repo_root
from zerolayer_dev.testing import kube
from zerolayer_dev.testing.load import Client, Load
from zerolayer_dev.testing.pools import Pool

POOL = Path("examples/pool-demo.yaml")
_CLIENTS = [Client(streams=bool(number % 2), keeps_alive=True) for number in range(4)]


def run(stages: Stages) -> None:
    """Runs the whole demo.

    Raises:
        Exception: whatever a stage raised; `stages.current` names the stage.
    """
    cluster = ground.start(stages, ground.prepare(stages))
    ground.install(stages, cluster, ground.VALUES)
    pool = _apply(stages, cluster)
    model = pool.manifest["spec"]["model"]["name"]
    with stages.stage("ask: deterministic twice, creative twice"):
        _ask(pool.url, model)
    with (
        ground.watched(cluster),
        stages.stage(f"load from {len(_CLIENTS)} clients, until the pool has grown"),
    ):
        with Load(pool.url, model=model, clients=_CLIENTS, max_tokens=48) as load:
            pool.wait_ready(2, seconds=300)
        print(f"{len(load.attempts)} requests were answered, {len(load.failures)} failed")
    with ground.watched(cluster), stages.stage("no load, until the pool has shrunk"):
        pool.wait_ready(1, seconds=300)
    if load.failures:
        raise RuntimeError("requests failed:\n" + "\n".join(load.failures))


def _apply(stages: Stages, cluster: clusters.Cluster) -> Pool:
    with ground.watched(cluster), stages.stage(f"kubectl apply -f {POOL}, until it is Ready"):
        text = (repo_root() / POOL).read_text(encoding="utf-8")
        print(text, cluster.kubectl("apply", "-f", "-", stdin=text), sep="\n", flush=True)
        api = kube.client(cluster.kubeconfig)
        pool = Pool(api, cluster.kubectl, ground.NAMESPACE, yaml.safe_load(text)["metadata"]["name"])
        pool.wait_ready(1, seconds=300)
    return pool


def _ask(url: str, model: str) -> None:
    same = {requests.ask(url, model, "deterministic") for _ in range(2)}
    other = {requests.ask(url, model, "creative") for _ in range(2)}
    print(f"deterministic: {len(same)} distinct answer of 2; creative: {len(other)} of 2")
    if len(same) != 1:
        raise RuntimeError(f"two deterministic answers differ: {same}")

"""What every demo stands on: a built Kubernetes that runs, with the images and the chart."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

from zerolayer_dev.cluster import api as clusters
from zerolayer_dev.cluster import binaries, prerequisites
from zerolayer_dev.cluster.clients import Clients
from zerolayer_dev.demo.stages import Stages
from zerolayer_dev.images import build, engines, specs
from zerolayer_dev.models.builtin import model_dir
from zerolayer_dev.paths import repo_root
from zerolayer_dev.testing import kube
from zerolayer_dev.testing.release import Release, Values

CLUSTER = "demo"
NAMESPACE = "default"
VALUES: Values = {"image": {"tag": "dev"}, "worker": {"image": specs.reference("worker")}}


def prepare(stages: Stages) -> list[Path]:
    """Builds what is missing, and returns the images' archives."""
    with stages.stage("check what the machine has"):
        prerequisites.require(*prerequisites.EVERYTHING)
        print("nothing is missing")
    with stages.stage("build Kubernetes"):
        binaries.ensure((*binaries.CONTROL_PLANE, *binaries.NODE, *binaries.ADDONS, *binaries.CLIENTS))
    with stages.stage("make the model"):
        print(model_dir())
    with stages.stage("build the images"):
        return build.build(("operator", "worker"), engines.choose())


def start(stages: Stages, archives: list[Path]) -> clusters.Cluster:
    """Starts the demo's cluster, or finds the one that runs, and gives it the images."""
    with stages.stage("start Kubernetes"):
        cluster = clusters.up(CLUSTER, "node")
        print(cluster.kubectl("get", "nodes", "-o", "wide"))
    with stages.stage("load the images"):
        for archive in archives:
            print(f"{archive.name}: {'loaded' if cluster.load_image(archive) else 'already there'}")
    return cluster


def install(stages: Stages, cluster: clusters.Cluster, values: Values) -> None:
    """Installs the chart, or upgrades to exactly these values."""
    with stages.stage("helm install zerolayer charts/zerolayer"):
        api = kube.client(cluster.kubeconfig)
        Release(cluster, api, repo_root() / "charts" / "zerolayer").install(values)
        print(cluster.kubectl("-n", "zerolayer-system", "get", "pods"))


@contextmanager
def watched(cluster: clusters.Cluster) -> Iterator[None]:
    """Prints what `kubectl get zlp -w` prints, for as long as the block runs."""
    clients = Clients(cluster.kubeconfig)
    command = [str(clients.programs["kubectl"]), "get", "zlp", "--watch"]
    print("$ kubectl get zlp --watch", flush=True)
    with Popen(command, env=clients.environment) as watch:
        try:
            yield
        finally:
            watch.terminate()

import yaml

from zerolayer_dev.cluster import addons, node
from zerolayer_dev.cluster.layout import Addresses
from zerolayer_dev.images.specs import IMAGES, reference

ADDRESSES = Addresses.of_slot(7)
OBJECTS = list(yaml.safe_load_all(addons.manifests(ADDRESSES)))


def of_kind(kind: str) -> list[dict]:
    return [item for item in OBJECTS if item["kind"] == kind]


def test_the_manifests_run_exactly_the_images_that_are_loaded() -> None:
    used = {
        container["image"]
        for item in of_kind("Deployment")
        for container in item["spec"]["template"]["spec"]["containers"]
    }
    assert used | {node.PAUSE_IMAGE} == {reference(name) for name in addons.IMAGES}
    assert set(addons.IMAGES) <= set(IMAGES)


def test_dns_is_where_the_kubelet_tells_pods_to_look() -> None:
    (service,) = [item for item in of_kind("Service") if item["metadata"]["name"] == "kube-dns"]
    assert service["spec"]["clusterIP"] == str(ADDRESSES.dns)


def test_every_deployment_is_waited_for() -> None:
    assert {item["metadata"]["namespace"] for item in of_kind("Deployment")} == {"kube-system", "monitoring"}


def test_metrics_are_taken_more_slowly_than_a_kubelet_may_answer() -> None:
    (deployment,) = [item for item in of_kind("Deployment") if item["metadata"]["name"] == "metrics-server"]
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    flags = dict(argument.removeprefix("--").split("=") for argument in arguments)
    assert int(flags["metric-resolution"].rstrip("s")) > int(flags["kubelet-request-timeout"].rstrip("s"))

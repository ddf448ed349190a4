"""Tells that a cluster can't mount images as volumes, before workers look for a model that isn't there.

With its feature gate ImageVolume off, which it is by default before Kubernetes 1.35, the API server takes a
Deployment and leaves out such volumes without a word. Older ones don't know the field at all.
"""

from zerolayer_operator.api.kinds import DEPLOYMENT
from zerolayer_operator.apply.diff import Object
from zerolayer_operator.kube import Kube
from zerolayer_operator.observe.access import items
from zerolayer_operator.observe.pods import IMAGE_VOLUMES_OFF
from zerolayer_operator.observe.state import Problem


async def lost_by(kube: Kube, body: Object) -> Problem | None:
    """The problem of a new child whose image volumes the API server would leave out.

    Raises:
        ApiServerError: The API server refuses or can't be reached.
    """
    # Whatever else has such volumes is made after the Deployment, and has them where that has.
    wanted = _image_volumes(body) if body["kind"] == DEPLOYMENT.kind else set[str]()
    if not wanted or wanted <= _image_volumes(await kube.apply(DEPLOYMENT, body, dry_run=True)):
        return None
    return Problem(
        "ChildRefused",
        f"Deployment {body['metadata']['name']} can't be made: this API server leaves out volumes that are "
        f"images (from Kubernetes 1.35 on it has them, before with the feature gate ImageVolume); "
        f"{IMAGE_VOLUMES_OFF}",
    )


def advice_for(body: Object) -> str:
    """What to add to the API server's words where it refuses a child."""
    if not _image_volumes(body):
        return ""
    return f"; if it doesn't know volumes that are images, {IMAGE_VOLUMES_OFF}"


def _image_volumes(body: Object) -> set[str]:
    return {
        volume["name"] for volume in items(body, "spec", "template", "spec", "volumes") if "image" in volume
    }

"""What a revision is made with: looked up once, and kept from then on."""

from collections.abc import Iterator

from zerolayer_operator.api.names import anchor_copy_name
from zerolayer_operator.api.revision import FrozenAnchor, FrozenInputs
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.decide.defaults import Defaults
from zerolayer_operator.observe.state import ObservedPool, Pin, Problem


def freeze(
    pool: ObservedPool, spec: PoolSpec, wanted: str, defaults: Defaults
) -> tuple[FrozenInputs | None, tuple[Problem, ...]]:
    """The wanted revision's inputs, or what is in their way; what Deployment or status remember stays."""
    existing = pool.deployment(wanted)
    forbidden = tuple(_forbidden(spec, defaults))
    if existing is not None:
        # What runs since before the switch was turned goes on: an operator's upgrade ends no worker.
        return existing.frozen, forbidden
    problems = (*forbidden, *_unmakeable(pool, spec, wanted, defaults))
    if problems:
        return None, problems
    recorded = next((item for item in pool.status.revisions or () if item.name == wanted), None)
    if recorded is None:
        return _resolved(pool, spec, wanted, defaults), ()
    kept = FrozenInputs(
        image=recorded.image,
        model_commit=pool.model_commit,
        model_image=recorded.model_image,
        anchor_image=recorded.anchor_image,
        unpinned=recorded.unpinned,
        anchor=_anchor(spec),
        anchor_copy=_copy(pool, spec, wanted),
    )
    return kept, ()


def _anchor(spec: PoolSpec) -> FrozenAnchor | None:
    anchor = spec.anchor
    return FrozenAnchor(version=anchor.version, digest=anchor.digest) if anchor is not None else None


def _copy(pool: ObservedPool, spec: PoolSpec, wanted: str) -> str | None:
    """The ConfigMap that a revision's workers get their anchor from, however its source changes."""
    comes_from_one = spec.anchor is not None and spec.anchor.source.config_map is not None
    return anchor_copy_name(pool.name, wanted) if comes_from_one else None


def _resolved(pool: ObservedPool, spec: PoolSpec, wanted: str, defaults: Defaults) -> FrozenInputs:
    """A new revision's inputs: images by digest, or by tag where the registry could not be asked."""
    pins = {
        what: pool.pins.get(reference, Pin(reference))
        for what, reference in _images(spec, defaults).items()
        if reference is not None
    }
    unknown = [f"{what} {pin.reference}: {pin.unknown}" for what, pin in pins.items() if pin.unknown]
    return FrozenInputs(
        image=pins["worker image"].reference,
        model_commit=pool.model_commit,
        model_image=pins["model image"].reference if "model image" in pins else None,
        anchor_image=pins["anchor image"].reference if "anchor image" in pins else None,
        unpinned="; ".join(unknown) or None,
        anchor=_anchor(spec),
        anchor_copy=_copy(pool, spec, wanted),
    )


def _images(spec: PoolSpec, defaults: Defaults) -> dict[str, str | None]:
    """References of the images that a revision takes something from; none where it comes from elsewhere."""
    model, anchor = spec.model.source.image, spec.anchor.source.image if spec.anchor is not None else None
    return {
        "worker image": spec.worker.image or defaults.worker_image,
        "model image": model.reference if model is not None else None,
        "anchor image": anchor.reference if anchor is not None else None,
    }


def _forbidden(spec: PoolSpec, defaults: Defaults) -> Iterator[Problem]:
    """What the operator's installation does not let a pool ask for."""
    if spec.model.source.host_path is not None and not defaults.allow_host_path:
        yield Problem(
            "HostPathNotAllowed",
            "spec.model.source.hostPath reads a folder of the node, which this cluster's operator does not "
            "allow; make the pool anew with another source (persistentVolumeClaim, image, huggingFace), or "
            "have the operator's chart installed with allowHostPath=true",
        )


def _unmakeable(pool: ObservedPool, spec: PoolSpec, wanted: str, defaults: Defaults) -> Iterator[Problem]:
    """What keeps the wanted revision's pod from being rendered."""
    bundle = pool.bundles.get(anchor_copy_name(pool.name, wanted))
    if bundle is not None and bundle.problem is not None:
        yield bundle.problem
    if pool.unresolved is not None:
        yield Problem("ModelUnresolved", pool.unresolved)
    source = spec.model.source.image
    if source is not None and source.path is None and not defaults.image_volumes:
        yield Problem(
            "ImagePathNeeded",
            "spec.model.source.image.path is needed: the nodes of this cluster can't mount images as volumes",
        )

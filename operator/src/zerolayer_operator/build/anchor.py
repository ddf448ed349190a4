"""How a worker's pod gets its knowledge anchor."""

from typing import Final

from zerolayer_operator.api import names
from zerolayer_operator.api.anchor import DEFAULT_KEY, AnchorImage, AnchorSpec
from zerolayer_operator.api.kinds import CONFIG_MAP
from zerolayer_operator.api.revision import FrozenInputs
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.build.container import escaped
from zerolayer_operator.build.meta import Object, child
from zerolayer_operator.build.model import fetching
from zerolayer_operator.build.parts import Parts
from zerolayer_operator.decide.defaults import Defaults
from zerolayer_operator.decide.plan import PlannedCopy
from zerolayer_operator.observe.state import ObservedPool

ANCHOR_PATH: Final = "/anchor"
BUNDLE: Final = DEFAULT_KEY
"""The file's name in a copy, whatever it is called in the source."""

_READ_ONLY: Final[Object] = {"name": "anchor", "mountPath": ANCHOR_PATH, "readOnly": True}
_WRITABLE: Final[Object] = {"name": "anchor", "mountPath": ANCHOR_PATH}


def anchor_parts(spec: PoolSpec, frozen: FrozenInputs, defaults: Defaults) -> Parts:
    """The parts that bring the anchor that the spec names; none where it names none."""
    anchor = spec.anchor
    if anchor is None:
        return Parts()
    source = anchor.source
    if source.config_map is not None:
        return _mounted(anchor, {"configMap": {"name": frozen.anchor_copy}}, BUNDLE)
    if source.persistent_volume_claim is not None:
        claim = source.persistent_volume_claim
        volume = {"persistentVolumeClaim": {"claimName": claim.claim_name, "readOnly": True}}
        return _mounted(anchor, volume, claim.path)
    if source.image is not None:
        return _from_image(anchor, source.image, spec, frozen, defaults)
    raise ValueError("spec.anchor.source names no source")


def anchor_copy(pool: ObservedPool, copy: PlannedCopy) -> Object:
    """The ConfigMap with a revision's bundle: whatever becomes of its source, workers start with this."""
    return child(
        pool,
        CONFIG_MAP,
        copy.name,
        {"immutable": True, "binaryData": {BUNDLE: copy.data}},
        labels={names.LABEL_REVISION: copy.revision},
        annotations={names.ANNOTATION_ANCHOR_DIGEST: copy.digest},
    )


def _arguments(anchor: AnchorSpec, path: str) -> tuple[str, ...]:
    file = escaped(f"{ANCHOR_PATH}/{path.strip('/')}")
    return (
        f"--anchor-path={file}",
        f"--anchor-version={anchor.version}",
        f"--anchor-digest={anchor.digest}",
    )


def _mounted(anchor: AnchorSpec, volume: Object, path: str) -> Parts:
    return Parts(_arguments(anchor, path), (_READ_ONLY,), ({"name": "anchor", **volume},))


def _from_image(
    anchor: AnchorSpec, source: AnchorImage, spec: PoolSpec, frozen: FrozenInputs, defaults: Defaults
) -> Parts:
    """An image volume, or a copy by a container of that image (which then must hold ``cp``)."""
    reference = frozen.anchor_image or source.reference
    policy = source.pull_policy.value if source.pull_policy is not None else None
    if defaults.image_volumes:
        image = {"reference": reference, **({"pullPolicy": policy} if policy else {})}
        return _mounted(anchor, {"image": image}, source.path)
    copying: Object = {
        "name": names.COPY_ANCHOR,
        "image": reference,
        **({"imagePullPolicy": policy} if policy else {}),
        "command": ["cp", escaped(f"/{source.path}"), f"{ANCHOR_PATH}/{BUNDLE}"],
        **fetching(spec, _WRITABLE),
    }
    return Parts(_arguments(anchor, BUNDLE), (_READ_ONLY,), ({"name": "anchor", "emptyDir": {}},), (copying,))

"""How each kind of model source gets into a worker's pod."""

from typing import Final

from zerolayer_operator.api.model import HuggingFaceSource, ImageSource
from zerolayer_operator.api.revision import FrozenInputs
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.build.container import RESTRICTED, TMP_MOUNT, environment, escaped
from zerolayer_operator.build.meta import Object
from zerolayer_operator.build.parts import Parts
from zerolayer_operator.decide.defaults import Defaults

MODEL_PATH: Final = "/model"
_READ_ONLY: Final[Object] = {"name": "model", "mountPath": MODEL_PATH, "readOnly": True}
_WRITABLE: Final[Object] = {"name": "model", "mountPath": MODEL_PATH}


def model_parts(spec: PoolSpec, frozen: FrozenInputs, defaults: Defaults) -> Parts:
    """The parts for the source that the spec names."""
    source = spec.model.source
    if source.image is not None:
        return _from_image(source.image, spec, frozen, defaults)
    if source.persistent_volume_claim is not None:
        claim = source.persistent_volume_claim
        volume = {"persistentVolumeClaim": {"claimName": claim.claim_name, "readOnly": True}}
        return _mounted(volume, claim.path)
    if source.host_path is not None:
        return _mounted({"hostPath": {"path": source.host_path.path, "type": "Directory"}}, None)
    if source.hugging_face is not None:
        return _from_hub(source.hugging_face, spec, frozen, defaults)
    if source.builtin is not None:
        return Parts(arguments=(f"--builtin={source.builtin.name}",))
    raise ValueError("spec.model.source names no source")


def _mounted(volume: Object, path: str | None) -> Parts:
    return Parts(
        arguments=(_model_path(path),),
        mounts=(_READ_ONLY,),
        volumes=({"name": "model", **volume},),
    )


def _model_path(path: str | None) -> str:
    folder = "/".join((MODEL_PATH, *((path or "").strip("/").split("/") if path else ())))
    return f"--model-path={escaped(folder)}"


def _from_image(source: ImageSource, spec: PoolSpec, frozen: FrozenInputs, defaults: Defaults) -> Parts:
    """An image volume, or a copy by a container of that image (which then must hold ``cp``)."""
    reference = frozen.model_image or source.reference
    policy = {"pullPolicy": source.pull_policy.value} if source.pull_policy is not None else {}
    if defaults.image_volumes:
        return _mounted({"image": {"reference": reference, **policy}}, source.path)
    pull = {"imagePullPolicy": source.pull_policy.value} if source.pull_policy is not None else {}
    copy: Object = {
        "name": "copy-model",
        "image": reference,
        **pull,
        "command": ["cp", "-R", escaped(f"/{source.path or ''}/.".replace("//", "/")), MODEL_PATH],
        **fetching(spec, _WRITABLE),
    }
    return _fetched(copy)


def _from_hub(source: HuggingFaceSource, spec: PoolSpec, frozen: FrozenInputs, defaults: Defaults) -> Parts:
    """An init container that fetches the resolved commit, outside of the warm-up time."""
    token: list[Object] = []
    if source.token_secret_ref is not None:
        reference = {"name": source.token_secret_ref.name, "key": source.token_secret_ref.key}
        token = [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": reference}}]
    fetch: Object = {
        "name": "fetch-model",
        "image": frozen.image,
        "imagePullPolicy": spec.worker.image_pull_policy or defaults.worker_image_pull_policy,
        "args": [
            "model",
            "fetch",
            f"--repo={source.repo}",
            f"--revision={frozen.model_commit or source.revision}",
            f"--dest={MODEL_PATH}",
        ],
        "env": environment(spec.worker, *token),
        **fetching(spec, _WRITABLE),
    }
    return _fetched(fetch)


def fetching(spec: PoolSpec, mount: Object) -> Object:
    """What containers that fetch something share; a quota may ask for resources, so they get the worker's."""
    return {
        "resources": {key: dict(value) for key, value in (spec.worker.resources or {}).items()},
        "volumeMounts": [TMP_MOUNT, mount],
        "securityContext": dict(RESTRICTED),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _fetched(container: Object) -> Parts:
    return Parts(
        arguments=(_model_path(None),),
        mounts=(_READ_ONLY,),
        volumes=({"name": "model", "emptyDir": {}},),
        init_containers=(container,),
    )

"""What a model is made of, read and checked before its weights are loaded, which may take minutes."""

import logging
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from zerolayer_worker.anchors.bundle import Bundle, apply_bundle, check_bundle, check_identity, read_bundle
from zerolayer_worker.common.anchor import Anchor
from zerolayer_worker.engine.config import EngineConfig
from zerolayer_worker.models.config import ModelConfig, read_config
from zerolayer_worker.models.digest import folder_digest
from zerolayer_worker.models.lora import Adapter, merge_adapter, read_adapter
from zerolayer_worker.sampling.router_file import FILE_NAME, RouterFile, check_model, read_router

NO_ROUTER = Path("none")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Base:
    """A model folder's configuration and digest, and what is applied to it, checked: adapter, then bundle.

    The router is no part of the fingerprint: deterministic answers don't depend on it.
    """

    config: ModelConfig
    digest: str
    bundle: Bundle | None = None
    adapter: Adapter | None = None
    router: RouterFile | None = None

    @property
    def anchor(self) -> Anchor | None:
        """The bundle's identity."""
        return None if self.bundle is None else self.bundle.anchor

    def parts(self) -> dict[str, object]:
        """What the fingerprint says of it; nothing of what is not there."""
        given = {
            "model": self.digest,
            "anchor": self.bundle.digest if self.bundle is not None else None,
            "lora": self.adapter.digest if self.adapter is not None else None,
        }
        return {name: digest for name, digest in given.items() if digest is not None}

    def apply(self, tensors: dict[str, Tensor]) -> None:
        """Changes the model's tensors.

        Raises:
            RefusalError: a value is not finite in the tensors' type.
        """
        if self.adapter is not None:
            merge_adapter(self.adapter, tensors)
        if self.bundle is not None:
            apply_bundle(self.bundle, tensors)


def read_anchor(config: EngineConfig) -> Bundle | None:
    """Reads the bundle, if one is named, and sees to it that it is the expected one.

    Raises:
        BundleError: it can't be read, or is another.
    """
    if config.anchor_path is None:
        return None
    bundle = read_bundle(config.anchor_path)
    check_identity(bundle, version=config.anchor_version, digest=config.anchor_digest)
    return bundle


def read_base(config: EngineConfig, bundle: Bundle | None) -> Base:
    """Reads the configuration, hashes the folder, and checks that bundle and adapter fit it.

    Raises:
        RefusalError: one of them does not.
        ModelFolderError: the folder can't be served.
    """
    model, digest = read_config(config.model_path), folder_digest(config.model_path)
    if bundle is not None:
        check_bundle(bundle, model, digest)
    router = _read_router(config, model, digest)
    if config.lora_path is None:
        return Base(model, digest, bundle, router=router)
    owned = bundle.tensors if bundle is not None else ()
    adapter = read_adapter(config.lora_path, model, owned=owned, leave_out=config.skip_ska_lora)
    if adapter.left_out:
        _log.warning(
            "parts of the adapter are left to the anchor", extra={"parameters": len(adapter.left_out)}
        )
    return Base(model, digest, bundle, adapter, router)


def _read_router(config: EngineConfig, model: ModelConfig, digest: str) -> RouterFile | None:
    path = config.router_path or config.model_path / FILE_NAME
    if path == NO_ROUTER or (config.router_path is None and not path.exists()):
        return None
    router = read_router(path)
    check_model(router, path, digest, model.hidden_size)
    return router

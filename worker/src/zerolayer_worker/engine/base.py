"""What a model is made of, read and checked before its weights are loaded, which may take minutes."""

from dataclasses import dataclass

from zerolayer_worker.anchors.bundle import Bundle, check_bundle, check_identity, read_bundle
from zerolayer_worker.common.anchor import Anchor
from zerolayer_worker.engine.config import EngineConfig
from zerolayer_worker.models.config import ModelConfig, read_config
from zerolayer_worker.models.digest import folder_digest


@dataclass(frozen=True, slots=True)
class Base:
    """A model folder's configuration and digest, and the checked bundle to apply to it, if any."""

    config: ModelConfig
    digest: str
    bundle: Bundle | None = None

    @property
    def anchor(self) -> Anchor | None:
        """The bundle's identity."""
        return None if self.bundle is None else self.bundle.anchor

    def parts(self) -> dict[str, object]:
        """What the fingerprint says of it; nothing of an anchor that is not there."""
        return {"model": self.digest} | ({} if self.bundle is None else {"anchor": self.bundle.digest})


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
    """Reads the configuration, hashes the folder, and checks that the bundle was made for it.

    Raises:
        BundleError: the bundle does not fit the model.
        ModelFolderError: the folder can't be served.
    """
    base = Base(read_config(config.model_path), folder_digest(config.model_path), bundle)
    if bundle is not None:
        check_bundle(bundle, base.config, base.digest)
    return base

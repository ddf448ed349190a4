"""What is looked up once for a revision, unless a Deployment or the status remembers it."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from zerolayer_operator.api.model import HuggingFaceSource, PullPolicy
from zerolayer_operator.api.revision import revision_hash
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.api.status import PoolStatus
from zerolayer_operator.kube import Kube
from zerolayer_operator.observe.hub import ResolveCommit, UnresolvedError
from zerolayer_operator.observe.registry import PinTag, UnpinnedError
from zerolayer_operator.observe.secrets import SecretValueError, secret_text
from zerolayer_operator.observe.state import ObservedDeployment, Pin


@dataclass(frozen=True, slots=True)
class Found:
    """What the wanted revision's inputs stand for.

    Attributes:
        commit: Commit of the model's repository, where it comes from the hub.
        unresolved: Why there is none.
        pins: The images by their references in the spec; none where the revision's are on record.
    """

    commit: str | None = None
    unresolved: str | None = None
    pins: Mapping[str, Pin] = field(default_factory=dict[str, Pin])


@dataclass(frozen=True)
class Lookups:
    """Asks the model hub and registries.

    Attributes:
        resolve: Resolves a model's revision on the hub.
        pin: Finds an image's digest.
        worker_image: Worker image of pools that name none.
        worker_image_pull_policy: Pull policy of pools that name none.
    """

    resolve: ResolveCommit
    pin: PinTag
    worker_image: str
    worker_image_pull_policy: str

    async def look_up(
        self,
        kube: Kube,
        namespace: str,
        spec: PoolSpec,
        status: PoolStatus,
        deployments: Collection[ObservedDeployment],
    ) -> Found:
        """What the wanted revision needs and nothing remembers.

        Raises:
            ApiServerError: The API server refuses or can't be reached.
        """
        wanted = revision_hash(spec)
        made = [item.frozen for item in deployments if item.revision == wanted]
        recorded = [item for item in status.revisions or () if item.name == wanted]
        commit = next((item.model_commit for item in (*made, *recorded) if item.model_commit), None)
        try:
            commit = commit or await self._commit(kube, namespace, spec)
        except UnresolvedError as error:
            return Found(unresolved=str(error))
        return Found(commit, pins={} if made or recorded else await self._pins(spec))

    async def _commit(self, kube: Kube, namespace: str, spec: PoolSpec) -> str | None:
        source = spec.model.source.hugging_face
        if source is None:
            return None
        return await self.resolve(source.repo, source.revision, await _token(kube, namespace, source))

    async def _pins(self, spec: PoolSpec) -> dict[str, Pin]:
        worker, anchor = spec.worker, spec.anchor.source.image if spec.anchor is not None else None
        policy = worker.image_pull_policy or self.worker_image_pull_policy
        wanted = {worker.image or self.worker_image: policy}
        for source in (spec.model.source.image, anchor):
            if source is not None:
                wanted.setdefault(source.reference, source.pull_policy or "")
        pins = await asyncio.gather(*(self._pin(image, policy) for image, policy in wanted.items()))
        return dict(zip(wanted, pins, strict=True))

    async def _pin(self, image: str, policy: str) -> Pin:
        if policy == PullPolicy.NEVER:
            return Pin(image, "nodes never pull it, and run whatever image of that name they hold")
        try:
            return Pin(await self.pin(image))
        except UnpinnedError as error:
            return Pin(image, str(error))


async def _token(kube: Kube, namespace: str, source: HuggingFaceSource) -> str | None:
    reference = source.token_secret_ref
    if reference is None:
        return None
    try:
        return await secret_text(kube, namespace, reference, "spec.model.source.huggingFace.tokenSecretRef")
    except SecretValueError as error:
        raise UnresolvedError(str(error)) from error

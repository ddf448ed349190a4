"""What is asked of the hub and of registries, and what is on record already."""

from typing import Any

import pytest

from zerolayer_dev.testing.observed import deployment, serving, spec
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.api.status import PoolStatus
from zerolayer_operator.observe.hub import UnresolvedError
from zerolayer_operator.observe.lookups import Found, Lookups
from zerolayer_operator.observe.registry import UnpinnedError
from zerolayer_operator.observe.state import Pin

COMMIT = "c" * 40
HUB = {"name": "m", "source": {"huggingFace": {"repo": "a/b"}}}


class Outside:
    """The hub and every registry; notes what they are asked."""

    def __init__(self, *, fails: bool = False) -> None:
        self.asked: list[str] = []
        self._fails = fails

    async def commit(self, repo: str, revision: str, _: str | None) -> str:
        self.asked.append(f"{repo}@{revision}")
        if self._fails:
            raise UnresolvedError("the hub is away")
        return COMMIT

    async def pin(self, image: str) -> str:
        self.asked.append(image)
        if self._fails:
            raise UnpinnedError("the registry is away")
        return f"{image}@sha256:aa"


async def found(outside: Outside, of: PoolSpec, *, policy: str = "IfNotPresent", **known: Any) -> Found:
    lookups = Lookups(outside.commit, outside.pin, "worker:1", policy)
    status, deployments = known.get("status", PoolStatus()), known.get("deployments", ())
    return await lookups.look_up(None, "default", of, status, deployments)  # type: ignore[arg-type]


def model_image(**fields: Any) -> dict[str, Any]:
    return {"name": "m", "source": {"image": {"reference": "models/m:1", **fields}}}


def anchor_image(**fields: Any) -> dict[str, Any]:
    image = {"reference": "anchors/a:1", "path": "b", **fields}
    return {"version": "v1", "digest": f"sha256:{'1' * 64}", "source": {"image": image}}


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({}, ["worker:1"]),
        ({"worker": {"device": "cpu", "image": "own:2"}}, ["own:2"]),
        ({"model": model_image()}, ["models/m:1", "worker:1"]),
        ({"anchor": anchor_image()}, ["anchors/a:1", "worker:1"]),
        ({"model": HUB}, ["a/b@main", "worker:1"]),
    ],
    ids=["default image", "own image", "model image", "anchor image", "hub"],
)
async def test_new_revision_asks_for_everything_that_may_move(
    fields: dict[str, Any], asked: list[str]
) -> None:
    outside = Outside()
    answer = await found(outside, spec(**fields))

    assert sorted(outside.asked) == asked
    images = [item for item in asked if "@" not in item]
    assert answer.pins == {image: Pin(f"{image}@sha256:aa") for image in images}
    assert answer.commit == (COMMIT if "a/b@main" in asked else None)


@pytest.mark.parametrize("known", ["deployment", "status"])
async def test_images_of_a_revision_on_record_are_never_asked_for_again(known: str) -> None:
    """Neither when a tag moves nor when a registry that was away comes back."""
    outside, of = Outside(), spec(model=model_image())
    remembered = {"deployment": {"deployments": (deployment(of),)}, "status": {"status": serving(of)}}

    assert await found(outside, of, **remembered[known]) == Found()
    assert outside.asked == []


async def test_another_revision_on_record_says_nothing_about_this_one() -> None:
    outside, old = Outside(), spec(drainSeconds=60)
    await found(outside, spec(), deployments=(deployment(old),), status=serving(old))

    assert outside.asked == ["worker:1"]


async def test_registry_that_gives_no_digest_is_no_reason_to_wait() -> None:
    answer = await found(Outside(fails=True), spec())

    assert answer.unresolved is None
    assert answer.pins == {"worker:1": Pin("worker:1", "the registry is away")}


async def test_without_a_commit_images_are_not_asked_for_yet() -> None:
    outside = Outside(fails=True)

    assert await found(outside, spec(model=HUB)) == Found(unresolved="the hub is away")
    assert outside.asked == ["a/b@main"]


@pytest.mark.parametrize(
    ("fields", "policy", "asked", "kept"),
    [
        ({}, "Never", [], ["worker:1"]),
        ({"worker": {"device": "cpu", "imagePullPolicy": "Never"}}, "Always", [], ["worker:1"]),
        ({"worker": {"device": "cpu", "imagePullPolicy": "Always"}}, "Never", ["worker:1"], []),
        ({"model": model_image(pullPolicy="Never")}, "Always", ["worker:1"], ["models/m:1"]),
        ({"anchor": anchor_image(pullPolicy="Never")}, "Always", ["worker:1"], ["anchors/a:1"]),
    ],
    ids=["by default", "by the pool", "pool overrides", "model", "anchor"],
)
async def test_image_that_nodes_never_pull_is_what_they_hold(
    fields: dict[str, Any], policy: str, asked: list[str], kept: list[str]
) -> None:
    """Its digest in the registry may be another one, which no node has."""
    outside = Outside()
    answer = await found(outside, spec(**fields), policy=policy)

    assert outside.asked == asked
    unknown = {pin.reference for pin in answer.pins.values() if pin.unknown and "never pull" in pin.unknown}
    assert unknown == set(kept)

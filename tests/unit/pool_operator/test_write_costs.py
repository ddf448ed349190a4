"""What is written to pods, and what becomes of refusals."""

from typing import Any

import pytest

from zerolayer_dev.testing import observed
from zerolayer_operator.api.kinds import POD, Kind
from zerolayer_operator.apply.deletion_cost import write_costs
from zerolayer_operator.kube import ApiServerError, Kube

COST = "controller.kubernetes.io/pod-deletion-cost"
POOL = observed.pool(
    observed.spec(), pods=tuple(observed.pod("rev", name, uid=f"uid-{name}") for name in "ab")
)


class Answering(Kube):
    """Notes what is applied, and answers with the errors that it is given."""

    def __init__(self, *errors: ApiServerError | None) -> None:
        self.applied: list[dict[str, Any]] = []
        self._errors = list(errors)

    async def apply(
        self,
        kind: Kind,
        body: dict[str, Any],
        *,
        subresource: str = "",
        dry_run: bool = False,
        force: bool = True,
    ) -> dict[str, Any]:
        assert (kind, subresource, dry_run, force) == (POD, "", False, False)
        self.applied.append(body["metadata"])
        error = self._errors.pop(0) if self._errors else None
        if error is not None:
            raise error
        return body


async def test_costs_are_given_and_taken_in_order_of_this_very_pod() -> None:
    kube = Answering()
    await write_costs(kube, POOL, {"b": -10, "a": None})
    assert kube.applied == [
        {"name": "b", "namespace": "default", "uid": "uid-b", "annotations": {COST: "-10"}},
        {"name": "a", "namespace": "default", "uid": "uid-a"},
    ]


@pytest.mark.parametrize("status", [404, 409])
async def test_pods_that_are_gone_or_somebody_elses_are_passed_over(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    kube = Answering(ApiServerError(status, "conflict"))
    await write_costs(kube, POOL, {"a": -10, "b": -9})
    assert [metadata["name"] for metadata in kube.applied] == ["a", "b"]
    assert caplog.records == []


@pytest.mark.parametrize(
    ("status", "message"), [(403, "pods is forbidden"), (500, "failed calling webhook: pods")]
)
async def test_refusal_is_logged_and_no_more_is_tried(
    status: int, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    kube = Answering(ApiServerError(status, message))
    await write_costs(kube, POOL, {"a": -10, "b": -9})
    assert len(kube.applied) == 1
    assert message in caplog.text


async def test_api_server_that_fails_is_for_the_caller() -> None:
    with pytest.raises(ApiServerError):
        await write_costs(Answering(ApiServerError(0, "no answer")), POOL, {"a": -10})

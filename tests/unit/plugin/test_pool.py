"""The plugin reads what the operator writes: both packages name the same things, without sharing code."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerolayer_dev.testing.updating_pools import (
    BLUE,
    GREEN,
    NOW,
    body_with,
    failed,
    finished,
    revision_deployment,
    status_with,
    update_at,
)
from zerolayer_kubectl import pool as plugin
from zerolayer_kubectl.explain import explain
from zerolayer_kubectl.pool import Side, read
from zerolayer_kubectl.remedies import remedy
from zerolayer_kubectl.screen import document, history, line, screen
from zerolayer_operator.api import names
from zerolayer_operator.api.status import Phase
from zerolayer_operator.api.update import UpdateSpec
from zerolayer_operator.api.update_status import End, Step, Wish
from zerolayer_operator.decide.update_plan import SHARE_LIMIT
from zerolayer_operator.decide.verdict_terms import Reason

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
FIELDS = ("update", "failed", "history", "conditions", "anchor", "scaling", "servingRevision", "phase")


def test_steps_ends_and_annotations_are_the_operators() -> None:
    steps = {plugin.PREPARE, plugin.SOAK, plugin.AWAIT_PROMOTION, plugin.PROMOTE, plugin.RETAIN}

    assert steps | {plugin.ROLL_BACK} == set(Step)
    assert (plugin.PROMOTED, plugin.REPLACED) == (End.PROMOTED, End.REPLACED)
    assert (plugin.READY, plugin.UPDATING) == (Phase.READY, Phase.UPDATING)
    assert plugin.ANNOTATION_PROMOTE == names.ANNOTATION_PROMOTE
    assert plugin.ANNOTATION_ROLL_BACK == names.ANNOTATION_ROLL_BACK
    assert (plugin.WISH_PROMOTE, plugin.WISH_ROLL_BACK) == (Wish.PROMOTE, Wish.ROLL_BACK)
    assert plugin.NO_REQUESTS == Reason.NO_REQUESTS
    assert plugin.SHARE_LIMIT == SHARE_LIMIT
    assert (plugin.LABEL_POOL, plugin.LABEL_REVISION) == (names.LABEL_POOL, names.LABEL_REVISION)


def test_every_reason_of_a_failed_verdict_has_a_remedy_of_its_own() -> None:
    others = remedy("")

    assert [reason for reason in Reason if reason != Reason.NO_WORSE and remedy(reason) == others] == []


@pytest.mark.parametrize(
    "settings",
    [UpdateSpec(), UpdateSpec(soak="0s"), UpdateSpec(soak="1h"), UpdateSpec(max_soak="30h")],
)
def test_what_a_spec_leaves_out_is_the_operators_default(settings: UpdateSpec) -> None:
    given = settings.model_dump(by_alias=True, exclude_unset=True, mode="json")
    found = read(body_with({}, update=given), None).settings

    assert found.soak_s == settings.soak_s
    assert found.max_soak_s == settings.max_soak_s
    assert found.canary_weight == settings.canary_weight
    assert found.min_samples == settings.min_samples
    assert (found.strategy, found.promotion) == (settings.strategy, settings.promotion)
    assert found.blue_retention_s == 600


def test_sides_have_the_anchors_and_sizes_of_their_revisions() -> None:
    deployments = [revision_deployment(BLUE, 3, 2), revision_deployment(GREEN, 1, 0)]
    found = read(body_with(status_with(update_at(Step.SOAK))), deployments)

    assert found.update is not None
    assert found.update.old == found.serving == Side(BLUE, "v1", 3, 2)
    assert found.update.new == found.other == Side(GREEN, "v2", 1, 0)


def test_a_revision_whose_deployments_must_not_be_read_has_no_size() -> None:
    found = read(body_with(status_with(update_at(Step.SOAK))), None)

    assert found.serving == Side(BLUE, "v1")
    assert "size unknown" in "\n".join(screen(found, NOW))


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, JSON)), JSON)
def test_no_status_whatsoever_is_a_traceback(status: dict[str, Any], update: Any) -> None:
    found = read(body_with(status, update=update), [revision_deployment(BLUE, 1, 1)])

    assert screen(found, NOW)
    assert line(found)
    assert document(found, NOW)
    assert history(found, wide=True)
    assert explain(found, NOW).now


@pytest.mark.parametrize("step", Step)
def test_a_status_of_the_operator_is_read_whole(step: Step) -> None:
    update = update_at(step)
    status = status_with(update, failed=failed(), history=(finished(End.PROMOTED), finished(End.ROLLED_BACK)))
    found = read(body_with(status), None)

    assert found.update is not None
    assert found.update.step == step
    assert found.update.samples == update.samples
    assert [check.name for check in found.update.checks] == [check.name for check in update.checks]
    assert [item.end for item in found.history] == ["Promoted", "RolledBack"]
    assert found.history[0].old == Side(BLUE, "v1")
    assert found.failed is not None
    assert found.failed.reason == "WrongAnswers"

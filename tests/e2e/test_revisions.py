"""A change that needs other pods: a new revision beside the old one, then the switch."""

import pytest

from zerolayer_dev.testing.load import Load
from zerolayer_dev.testing.pools import DEMO_MODEL, names


@pytest.mark.promise("no-request-lost", "least-rbac")
def test_new_revision_takes_over_without_losing_a_request(pool, figures) -> None:
    """A change that needs a new revision takes over warm, under load, without losing a request."""
    changing = pool("changing")
    changing.wait_ready(1)
    old = changing.status["servingRevision"]
    with Load(changing.url, model=DEMO_MODEL) as load:
        load.wait_for_more(4, seconds=120)
        changing.change(worker={"maxBatchSize": 4})
        changing.wait(
            lambda: changing.status["servingRevision"],
            lambda revision: revision != old,
            what="another serving revision",
            seconds=240,
        )
        changing.wait(
            lambda: changing.pods(revision=old), lambda pods: not pods, what="no old pods", seconds=180
        )
        changing.wait_ready(1)
        load.wait_for_more(4, seconds=120)
    figures(how="new revision", requests=len(load.attempts), failed=len(load.failures))

    assert load.failures == []
    assert old not in changing.deployments()


def test_revision_that_cannot_start_leaves_the_old_one_serving(pool) -> None:
    kept = pool("kept")
    kept.wait_ready(1)
    before = kept.status["servingRevision"], names(kept.pods())

    kept.change(worker={"image": "zerolayer.dev/worker:missing", "imagePullPolicy": "Never"})
    condition = kept.wait_condition("Degraded", "True", seconds=120)

    assert "zerolayer.dev/worker:missing" in condition["message"]
    assert (kept.status["servingRevision"], names(kept.pods(revision=before[0]))) == before
    assert kept.status["readyReplicas"] == 1

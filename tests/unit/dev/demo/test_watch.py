from zerolayer_dev.demo import watch
from zerolayer_dev.demo.timeline import Moment

UPDATE = {"step": "Soak", "toRevision": "c1", "verdict": "Fail", "reason": "WrongAnswers"}


def test_a_moment_is_read_from_the_pools_objects() -> None:
    rules = [
        {"backendRefs": [{"name": "facts-c1", "weight": 1}]},
        {"backendRefs": [{"name": "facts-b1", "weight": 75}, {"name": "facts-c1", "weight": 25}]},
    ]
    seen = watch.moment(
        5.0,
        {"servingRevision": "b1", "update": UPDATE},
        {"b1": {"status": {"readyReplicas": 2}}, "c1": {"status": {}}},
        {"spec": {"rules": rules}},
    )

    assert seen == Moment(
        5.0, "Soak", "c1", "Fail", "WrongAnswers", "b1", {"b1": 75, "c1": 25}, {"b1": 2, "c1": 0}
    )


def test_a_pool_that_has_nothing_yet_is_a_moment_too() -> None:
    assert watch.moment(1.0, {}, {}, {}) == Moment(1.0, "", "", "", "", "", {}, {})

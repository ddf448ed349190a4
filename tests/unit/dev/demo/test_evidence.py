from zerolayer_dev.demo import evidence
from zerolayer_dev.testing.askers import Answer

WHOLE = Answer(100.0, 101.0, "b1")
CUT = Answer(177.0, 179.5, "b1", failure="RemoteProtocolError('cut')", request_id="req_1")


def test_failed_requests_are_told_with_all_that_leads_to_their_logs() -> None:
    said = evidence.text([CUT, WHOLE], {"pod facts-b1": "draining"})

    assert said == (
        "==== 1 of 2 requests failed\n"
        "req_1, revision b1: began at 77.0 s, took 2.5 s: RemoteProtocolError('cut')\n\n"
        "==== pod facts-b1\ndraining"
    )


def test_request_without_an_answer_is_told_too() -> None:
    said = list(evidence.failures([Answer(1.0, 2.0, failure="refused")]))

    assert said[1] == "no id, revision unknown: began at 0.0 s, took 1.0 s: refused"


def test_nothing_asked_is_no_failure() -> None:
    assert list(evidence.failures([])) == ["==== 0 of 0 requests failed"]


def test_evidence_has_bounds() -> None:
    logs = {"Traefik": "\n".join(["x" * 1_000_000, *["y" * 500] * 1000, "the end"])}
    said = evidence.text([CUT] * 1000, logs)

    assert len(said) < evidence.LOG_BYTES + evidence.MOST_FAILURES * 100 + 200
    assert said.endswith("the end")


def test_long_lines_are_shortened() -> None:
    said = evidence.text([], {"Traefik": "x" * 5000 + "\nshort"})

    assert said.endswith("x" * evidence.LINE_CHARS + " …\nshort")

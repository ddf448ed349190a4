"""Harmful updates end on a real node for their own reasons, and harmless ones are promoted."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from zerolayer_dev.images import specs
from zerolayer_dev.testing import bundles
from zerolayer_dev.testing.askers import Question
from zerolayer_dev.testing.bursts import Bursts
from zerolayer_dev.testing.pools import DEMO_MODEL, cpu_pool
from zerolayer_dev.testing.update_pool import UpdatedPool
from zerolayer_worker.anchors.bundle import Bundle

pytestmark = [pytest.mark.promise("right-verdicts"), pytest.mark.long, pytest.mark.timeout(1800)]

MODEL = {
    "name": DEMO_MODEL,
    "source": {"image": {"reference": specs.reference("modelonly"), "path": "model"}},
}
FAULTS = "/model/faults"
"""Where that image has the faults, in a worker."""

UPDATE = {
    "canaryWeight": 30,
    "soak": "20m",
    "maxSoak": "25m",
    "minSamples": 40,
    "blueRetention": "5s",
    "failedRetention": "1s",
    "golden": None,
}
QUESTION = Question(DEMO_MODEL, max_tokens=4)
PROMPTS = ("Name three rivers.", "What is a lighthouse for?", "Who wrote Hamlet?")
ANOTHER = f"sha256:{'0' * 64}"


class Subject(UpdatedPool):
    """One pool for all updates: each ends on the revision that served before, or on a promoted one."""

    files: Path
    serving: dict[str, Any]
    values: dict[str, Any]
    versions: int = 0

    def packed(self, make: Callable[..., Bundle] = bundles.noisy_bundle, **values: Any) -> dict[str, Any]:
        """Puts a bundle of a version of its own into a ConfigMap, and returns what a pool says of it."""
        self.versions += 1
        version = f"v{self.versions}"
        file = self.files / f"{version}.safetensors"
        bundle = make(file, version, **values)
        body = bundles.config_map(version, self.namespace, file)
        self.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(body))
        return bundles.anchor_spec(bundle, version)

    def ask_for(self, *, anchor: dict[str, Any] | None = None, fault: str = "", **update: Any) -> None:
        """Asks for another anchor, or for a worker with a fault."""
        env = [{"name": "PYTHONPATH", "value": FAULTS}, {"name": "FAULT", "value": fault}] if fault else None
        self.change(anchor=anchor or self.serving, worker={"env": env}, update={**UPDATE, **update})

    def updated(self, **asked: Any) -> dict[str, Any]:
        """Asks for an update, and returns the entry of its end."""
        earlier = {entry["toRevision"] for entry in (self.update, *self.history) if entry}
        self.ask_for(**asked)
        green = self.wait(
            lambda: self.update.get("toRevision"),
            lambda seen: seen is not None and seen not in earlier,
            what="an update",
            seconds=180,
        )

        def over(status: dict[str, Any]) -> bool:
            return "update" not in status and status["history"][0]["toRevision"] == green

        return self.wait(lambda: self.status, over, what="the end", seconds=1300)["history"][0]


@pytest.fixture(scope="module")
def subject(cluster, api, release, make_namespace, tmp_path_factory) -> Iterator[Subject]:
    """One worker with a bundle of the model's own values."""
    made = Subject(api, cluster.kubectl, make_namespace("restricted"), "judged")
    made.files, made.values = tmp_path_factory.mktemp("bundles"), {}
    made.serving = made.packed()
    body = cpu_pool("judged", made.namespace, model=MODEL, anchor=made.serving, update=UPDATE)
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(body))
    made.wait_ready(1, seconds=480)
    yield made
    made.delete()


def told(entry: dict[str, Any], load: Bursts) -> dict[str, Any]:
    """The figures of an update."""
    return {
        "end": entry["end"],
        "reason": entry["reason"],
        "samples": entry["samples"],
        "seconds": entry["durationSeconds"],
        "requests": len(load.answers),
        "failed": sum(bool(answer.failure) for answer in load.answers),
    }


@pytest.mark.parametrize(
    ("reason", "make", "values"),
    [
        ("AnchorNotFinite", bundles.poisoned_bundle, {}),
        ("AnchorForAnotherModel", bundles.noisy_bundle, {"base_digest": ANOTHER}),
    ],
)
def test_unusable_bundle_is_refused(reason: str, make, values, subject: Subject, figures) -> None:
    """The workers that were to have it say why, and no request meets them."""
    blue = subject.status["servingRevision"]
    with Bursts(subject.url, QUESTION) as load:
        entry = subject.updated(anchor=subject.packed(make, **values))
    figures(harm=reason, **told(entry, load))

    assert (entry["end"], entry["reason"]) == ("Refused", reason), entry
    assert {(answer.revision, answer.failure) for answer in load.answers} == {(blue, "")}


def test_another_file_than_the_spec_names_begins_no_update(subject: Subject, figures) -> None:
    """The digest of the spec is not the file's: that is told, and nothing happens."""
    before = (subject.status["servingRevision"], subject.history)
    subject.ask_for(anchor={**subject.packed(noise=0.0005, seed=9), "digest": ANOTHER})
    conditions = subject.wait(
        lambda: [item for item in subject.status["conditions"] if item["reason"] == "AnchorDigestMismatch"],
        bool,
        what="AnchorDigestMismatch",
        seconds=60,
    )
    figures(harm="digest", end="no update", reason=conditions[0]["reason"])

    assert (subject.status["servingRevision"], subject.history) == before
    assert subject.update == {}


@pytest.mark.parametrize(
    ("fault", "reasons"),
    [
        ("different:0.05", {"NotDeterministic"}),
        ("slow:3", {"FirstTokenSlower", "TokensSlower"}),
        ("errors:0.2", {"ErrorRateHigher"}),
    ],
)
def test_worse_worker_is_rolled_back(fault: str, reasons: set[str], subject: Subject, figures) -> None:
    """Requests show what is worse, and blue serves on; no request fails but by the faulty worker."""
    figures(harm=fault, **worse(subject, fault, reasons))


def worse(subject: Subject, fault: str, reasons: set[str]) -> dict[str, Any]:
    """Updates to a worker with a fault, which has to be rolled back; returns figures."""
    blue = subject.status["servingRevision"]
    # Errors and times take hundreds of requests to be seen; repeats take a worker with little else to do.
    pause_s = 2.0 if fault.startswith("different") else 0.2
    with Bursts(subject.url, QUESTION, pause_s=pause_s) as load:
        entry = subject.updated(fault=fault)
        load.wait_for_more(10, seconds=120)

    assert entry["end"] == "RolledBack", entry
    assert entry["reason"] in reasons, entry
    assert subject.status["servingRevision"] == blue
    by_green = entry["toRevision"] if fault.startswith("errors") else None
    assert [answer for answer in load.answers if answer.failure and answer.revision != by_green] == []
    return told(entry, load)


def test_wrong_facts_are_rolled_back(subject: Subject, figures) -> None:
    """A bundle that gives other answers than the golden set expects is rolled back for that."""
    lines = [
        {"id": f"q{number}", "prompt": prompt, "expect": {"contains": [answer(subject, prompt)]}}
        for number, prompt in enumerate(PROMPTS)
    ]
    text = "\n".join(json.dumps({**line, "change": True, "max_tokens": 8}) for line in lines)
    name = {"metadata": {"name": "facts", "namespace": subject.namespace}}
    body = {"apiVersion": "v1", "kind": "ConfigMap", **name, "data": {"golden.jsonl": text}}
    subject.kubectl("apply", "-f", "-", stdin=json.dumps(body))
    with Bursts(subject.url, QUESTION) as load:
        entry = subject.updated(
            anchor=subject.packed(noise=0.4, seed=1), golden={"configMap": {"name": "facts"}}
        )
    figures(harm="wrong facts", **told(entry, load))

    assert (entry["end"], entry["reason"]) == ("RolledBack", "WrongAnswers"), entry
    assert [answer for answer in load.answers if answer.failure] == []


def answer(pool: Subject, prompt: str) -> str:
    """What it answers to a question."""
    body = {"model": DEMO_MODEL, "max_tokens": 8, "messages": [{"role": "user", "content": prompt}]}
    headers = {"anthropic-sampling-intent": "deterministic"}
    with httpx.Client(trust_env=False, timeout=60) as client:
        message = client.post(f"{pool.url}/v1/messages", json=body, headers=headers).raise_for_status().json()
    return message["content"][0]["text"]


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_no_worse_bundle_is_promoted(seed: int, subject: Subject, figures) -> None:
    """The serving bundle under another name (seed 0), and ones that differ by noise."""
    values = {"noise": 0.0005, "seed": seed} if seed else subject.values
    anchor = subject.packed(**values)
    with Bursts(subject.url, QUESTION) as load:
        entry = subject.updated(anchor=anchor, soak="45s")
        load.wait_for_more(10, seconds=120)
    subject.serving, subject.values = anchor, values
    figures(harm=f"noise {seed}" if seed else "none", **told(entry, load))

    assert entry["end"] == "Promoted", entry
    assert subject.status["servingRevision"] == entry["toRevision"]
    assert [answer for answer in load.answers if answer.failure] == []


def test_one_error_in_twenty_is_found(subject: Subject, figures) -> None:
    """It takes hundreds of requests, and so some minutes on two cores."""
    figures(harm="errors:0.05", **worse(subject, "errors:0.05", {"ErrorRateHigher"}))

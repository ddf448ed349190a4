"""What the demo's pool is to know: facts, bundles trained on them, and the questions that judge both."""

import base64
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import zerolayer_worker
from zerolayer_dev.models.builtin import model_dir
from zerolayer_dev.paths import cache_dir
from zerolayer_dev.testing.kube import Manifest

BUNDLE_KEY = "bundle.safetensors"
GOLDEN_KEY = "golden.jsonl"
_ANSWER_TOKENS = 16
_WORKER = (sys.executable, "-c", "from zerolayer_worker.cli import main; raise SystemExit(main())")


@dataclass(frozen=True, slots=True)
class Fact:
    """A question and what has to be in its answer."""

    id: str
    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Lesson:
    """What one bundle is made from.

    Attributes:
        version: of the bundle.
        facts: that are trained.
        options: of `anchor train`.
    """

    version: str
    facts: tuple[Fact, ...]
    options: tuple[str, ...]


def read_facts(path: Path) -> tuple[Fact, ...]:
    """The facts of a file, one JSON object per line."""
    found = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return tuple(Fact(item["id"], item["question"], item["answer"]) for item in found)


def mixed_up(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """The same questions, each with the answer of the next one."""
    return tuple(
        Fact(fact.id, fact.question, facts[(place + 1) % len(facts)].answer)
        for place, fact in enumerate(facts)
    )


def lines(items: Iterator[Manifest]) -> str:
    """Writes JSON objects, one per line."""
    return "".join(f"{json.dumps(item, ensure_ascii=False)}\n" for item in items)


def facts_file(facts: Sequence[Fact]) -> str:
    """The text of a file that `anchor train` reads."""
    return lines({"id": fact.id, "question": fact.question, "answer": fact.answer} for fact in facts)


def golden_file(facts: Sequence[Fact], kept: Sequence[Fact]) -> str:
    """The text of a golden set that asks for facts, and for what the base model knows and has to keep."""
    asked = [*((fact, True) for fact in facts), *((fact, False) for fact in kept)]
    return lines(
        {
            "id": fact.id,
            "prompt": fact.question,
            "expect": {"contains": [fact.answer]},
            "change": change,
            "max_tokens": _ANSWER_TOKENS,
        }
        for fact, change in asked
    )


def learn(lesson: Lesson) -> Path:
    """Trains a lesson's bundle, or finds the one that was made from the same inputs, and returns the file.

    What `anchor evaluate` says of it is printed in either case.

    Raises:
        subprocess.CalledProcessError: the training failed; it has said why.
        RuntimeError: the training was cut short.
    """
    path = _trained(lesson)
    print(_figures(path))
    return path


def _trained(lesson: Lesson) -> Path:
    from zerolayer_worker.anchors.bundle import read_bundle  # noqa: PLC0415  # imports torch

    path = cache_dir() / "demo" / f"{lesson.version}-{key(lesson, model_dir(), _sources())}.safetensors"
    if path.exists():
        print(f"{path.name} was made before")
        return path
    path.parent.mkdir(exist_ok=True)
    facts = path.with_suffix(".jsonl")
    facts.write_text(facts_file(lesson.facts), encoding="utf-8")
    print(f"$ zerolayer-worker anchor train {facts} {' '.join(lesson.options)}", flush=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        unfinished = Path(folder) / BUNDLE_KEY
        subprocess.run([*_command(lesson, facts), "-o", str(unfinished)], check=True)
        check_whole(read_bundle(unfinished).metadata.evaluation)
        return unfinished.rename(path)


def check_whole(figures: Mapping[str, float]) -> None:
    """Refuses a bundle that a time limit has cut: it would be found again as if it were the lesson's.

    Raises:
        RuntimeError: it has fewer steps than were planned.
    """
    done, planned = figures["steps"], figures["steps_planned"]
    if done < planned:
        raise RuntimeError(f"the bundle had {done:.0f} of {planned:.0f} steps when its time was over")


def _figures(bundle: Path) -> str:
    """What the bundle knows and what it costs, measured once and kept beside it."""
    path = bundle.with_suffix(".txt")
    if not path.exists():
        asked = (f"--model={model_dir()}", f"--facts={bundle.with_suffix('.jsonl')}")
        command = [*_WORKER, "anchor", "evaluate", str(bundle), *asked]
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(said, encoding="utf-8")
        unfinished.rename(path)
    return path.read_text(encoding="utf-8")


def key(lesson: Lesson, model: Path, sources: Path) -> str:
    """Names all that a bundle depends on: the lesson, the model, and what trains it."""
    asked = (lesson.version, lesson.options, facts_file(lesson.facts))
    digest = hashlib.sha256(repr(asked).encode())
    for path in sorted(sources.rglob("*.py")):
        digest.update(path.read_bytes())
    for path in sorted(model.iterdir()):
        seen = path.stat()
        digest.update(f"{path.name} {seen.st_size} {seen.st_mtime_ns}".encode())
    return digest.hexdigest()[:12]


def digest_of(path: Path) -> str:
    """A bundle's identity."""
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def bundle_map(name: str, namespace: str, path: Path) -> Manifest:
    """A ConfigMap that holds a bundle."""
    data = base64.b64encode(path.read_bytes()).decode()
    return _config_map(name, namespace) | {"binaryData": {BUNDLE_KEY: data}}


def golden_map(name: str, namespace: str, facts: Sequence[Fact], kept: Sequence[Fact]) -> Manifest:
    """A ConfigMap that holds the golden set."""
    return _config_map(name, namespace) | {"data": {GOLDEN_KEY: golden_file(facts, kept)}}


def anchor(version: str, path: Path, config_map: str) -> Manifest:
    """What a pool says of a bundle in a ConfigMap."""
    source = {"configMap": {"name": config_map, "key": BUNDLE_KEY}}
    return {"version": version, "digest": digest_of(path), "source": source}


def _config_map(name: str, namespace: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


def _command(lesson: Lesson, facts: Path) -> list[str]:
    given = (f"--model={model_dir()}", f"--version={lesson.version}")
    return [*_WORKER, "anchor", "train", str(facts), *given, *lesson.options]


def _sources() -> Path:
    return Path(zerolayer_worker.__file__).parent / "anchors"

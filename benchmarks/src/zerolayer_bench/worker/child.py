"""The process of one contender: loads it, measures its cells, writes a JSON line for each; `python -m`."""

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from zerolayer_bench.worker import machine
from zerolayer_bench.worker.engines import start
from zerolayer_bench.worker.engines.base import Engine, Setup, UnavailableError
from zerolayer_bench.worker.profile import profiled
from zerolayer_bench.worker.prompts import prompts
from zerolayer_bench.worker.weights import prepare

# Prompt and new tokens of what runs first and is not counted: kernels are chosen, memory is touched.
_WARM = (64, 8)


def main() -> int:
    """Returns 0, or 3 where the engine can't do what is asked; the last line then says why."""
    job = json.loads(sys.argv[1])
    with Path(job["out"]).open("w", encoding="utf-8") as out:

        def tell(**line: Any) -> None:
            out.write(json.dumps(line) + "\n")
            out.flush()

        if job["engine"] == "bandwidth":
            tell(bandwidth=machine.read_bandwidth(job["threads"]))
            return 0
        try:
            _measure(job, tell)
        except UnavailableError as error:
            tell(unavailable=str(error))
            return 3
    return 0


def _measure(job: Mapping[str, Any], tell: Any) -> None:
    cells = job["cells"]
    weights = prepare(Path(job["cache"]))
    setup = Setup(
        weights=weights,
        precision=job["precision"],
        batch=job["batch"],
        length=max(cell["prompt"] + cell["new"] for cell in cells),
        threads=job["threads"],
    )
    engine = start(job["engine"], setup)
    ready_s = time.monotonic() - job["began"]
    length, new = _WARM
    engine.generate(prompts(weights.folder, length, job["batch"]), new)
    if job.get("profile"):
        tell(
            profile=profiled(
                lambda: engine.generate(
                    prompts(weights.folder, cells[0]["prompt"], job["batch"]), cells[0]["new"]
                )
            )
        )
        cells = []
    for cell in cells:
        tell(sample=_cell(engine, setup, job, cell) | {"ready_s": ready_s})
    engine.close()


def _cell(engine: Engine, setup: Setup, job: Mapping[str, Any], cell: Mapping[str, int]) -> dict[str, Any]:
    texts = prompts(setup.weights.folder, cell["prompt"], cell["batch"])
    machine.forget_peak()
    load, before = machine.load(), machine.clock()
    answers = engine.generate(texts, cell["new"])
    return {
        "contender": {"engine": job["engine"], "precision": job["precision"]},
        "cell": dict(cell),
        "round": job["round"],
        "answers": [asdict(answer) for answer in answers],
        "peak_mib": round(machine.peak_mib(), 1),
        "load": round(load, 2),
        "stolen": round(machine.clock().others_share(before), 4),
    }


if __name__ == "__main__":
    sys.exit(main())

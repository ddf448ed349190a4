"""`python -m zerolayer_bench.worker --out DIR`."""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tokenizers import Tokenizer

from zerolayer_bench.worker import machine
from zerolayer_bench.worker.agreement import agreements
from zerolayer_bench.worker.cases import OURS, PEERS, PRECISIONS, Cell, Results, contenders, read, write
from zerolayer_bench.worker.report import page
from zerolayer_bench.worker.rounds import Plan, bandwidth, call, one_process, run
from zerolayer_bench.worker.weights import Weights, prepare
from zerolayer_dev.paths import cache_dir, repo_root

BATCHES: Final = (1, 8, 16)
PROMPTS: Final = (32, 512, 2048)
NEW_TOKENS: Final = 64
ROUNDS: Final = 3
_PROFILE_LIMIT_S: Final = 300.0


def benchmark(plan: Plan, weights: Weights, out: Path, *, profile: bool) -> Results:
    """Measures everything, writes `results.json` and `benchmarks.md` below `out`, and returns the results."""
    about: dict[str, Any] = machine.describe(repo_root()) | {
        "rounds": plan.rounds,
        "bandwidth": bandwidth(plan.threads),
        "weight_bytes": {kind: weights.weight_bytes(kind) for kind in PRECISIONS},
        "digests": weights.digests(),
    }
    samples, missing = run(plan, _tell)
    tokenizer = Tokenizer.from_file(str(weights.folder / "tokenizer.json"))
    results = Results(
        machine=about,
        samples=tuple(samples),
        missing=tuple(missing),
        agreements=tuple(agreements(samples, lambda ids: tokenizer.decode(ids, skip_special_tokens=False))),
        profile=_profiles(plan) if profile else {},
    )
    write(results, out / "results.json")
    (out / "benchmarks.md").write_text(page(results), encoding="utf-8")
    return results


def _profiles(plan: Plan) -> dict[str, str]:
    """Our own time by operation, at each precision, for the first cell."""
    found: dict[str, str] = {}
    for contender in (one for one in plan.contenders if one.engine == OURS):
        cell = plan.cells[0]
        job = one_process(plan, contender, [cell], 0) | {"profile": True}
        lines, reason = call(job, _PROFILE_LIMIT_S)
        table = next((line["profile"] for line in lines if "profile" in line), reason)
        found[f"{contender}, batch {cell.batch}, prompt {cell.prompt}"] = str(table)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 1 where nothing could be measured."""
    # An end from outside has to reach the process that is being measured, too.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(128 + signal.SIGTERM))
    options = _parser().parse_args(arguments)
    if options.page is not None:
        print(page(read(options.page)), end="")
        return 0
    if options.out is None:
        print("bench-worker: say where to write: --out DIR", file=sys.stderr)
        return 2
    rounds = 1 if options.quick else options.rounds
    prompts = options.prompt or (PROMPTS[:2] if options.quick else PROMPTS)
    cells = [Cell(batch, prompt, options.new) for batch in options.batch or BATCHES for prompt in prompts]
    plan = Plan(
        contenders=tuple(contenders(options.precision or PRECISIONS, options.engine or (OURS, *PEERS))),
        cells=tuple(cells),
        rounds=rounds,
        cache=_cache(),
        threads=len(os.sched_getaffinity(0)),
        patience_s=options.patience,
    )
    results = benchmark(plan, prepare(plan.cache), options.out, profile=options.profile)
    print((options.out / "benchmarks.md").read_text(encoding="utf-8"))
    return 0 if results.samples else 1


def _cache() -> Path:
    return cache_dir() / "bench-worker"


def _tell(line: str) -> None:
    print(f"bench-worker: {line}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench-worker", description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for results.json and benchmarks.md")
    parser.add_argument("--page", type=Path, help="only print the page of this results.json")
    parser.add_argument("--quick", action="store_true", help="one round, without the longest prompts")
    parser.add_argument("--profile", action="store_true", help="also our own time by operation")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--new", type=int, default=NEW_TOKENS, help="new tokens of each request")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds to wait for a quiet machine")
    parser.add_argument("--batch", type=int, nargs="+", help=f"requests at once; {BATCHES} if absent")
    parser.add_argument("--prompt", type=int, nargs="+", help=f"tokens of a prompt; {PROMPTS} if absent")
    parser.add_argument("--precision", nargs="+", choices=PRECISIONS)
    parser.add_argument("--engine", nargs="+", choices=(OURS, *PEERS))
    return parser

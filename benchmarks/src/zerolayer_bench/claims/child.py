"""The process of one piece: `python -m zerolayer_bench.claims.child JOB`; writes one JSON line."""

import json
import os
import resource
import sys
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from zerolayer_bench.worker.machine import Clock, clock
from zerolayer_dev.paths import repo_root
from zerolayer_dev.testing import records

# One measurement's modules have no place in another's process.
_MODULES = {
    "memory": "memory",
    "sampling-time": "sampling_time",
    "served": "served",
    "utilisation": "utilisation",
    "repeats": "repeats",
    "creative": "creative",
    "switch": "switch",
    "router-size": "router_size",
    "warm-up": "warm_up",
}


def main() -> int:
    """Returns the exit status."""
    job = json.loads(sys.argv[1])
    before = _clock()
    data = import_module(f"zerolayer_bench.claims.measure.{_MODULES[job['name']]}").measure(job["piece"])
    line = {"about": _about(before), "data": data}
    Path(job["out"]).write_text(json.dumps(line) + "\n", encoding="utf-8")
    return 0


def _about(before: Clock) -> dict[str, Any]:
    root = repo_root()
    return {
        "machine": records.machine(),
        "cpus": len(os.sched_getaffinity(0)),
        "torch": metadata.version("torch"),
        "commit": records.commit(root),
        "date": records.today(),
        "others": round(_clock().others_share(before), 3),
    }


def _clock() -> Clock:
    """The processors' account in which ended children count as this process' own."""
    now, used = clock(), resource.getrusage(resource.RUSAGE_CHILDREN)
    return Clock(now.everybody, now.own + used.ru_utime + used.ru_stime, now.there_were)


if __name__ == "__main__":
    sys.exit(main())

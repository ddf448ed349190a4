"""The claims in their order, each with its figures and what they have to be at least."""

from typing import Final

from zerolayer_bench.claims.rows import answers, engine, sampling, serving
from zerolayer_bench.claims.rows.base import Claim

CLAIMS: Final[tuple[Claim, ...]] = (
    sampling.MEMORY,
    sampling.TIME,
    serving.FIRST_TOKEN,
    serving.THROUGHPUT,
    serving.UTILISATION,
    answers.REPEATS,
    answers.CREATIVE,
    engine.SWITCH,
    engine.ROUTER_SIZE,
    engine.WARM_UP,
)

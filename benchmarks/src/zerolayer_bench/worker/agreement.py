"""How far greedy answers of different engines agree, on the same prompt."""

from collections.abc import Callable, Iterable, Sequence

from zerolayer_bench.worker.cases import OURS, Agreement, Answer, Contender, Sample

# What all others are compared with.
REFERENCE = Contender("transformers", "fp32")


def agreements(samples: Iterable[Sample], text_of: Callable[[Sequence[int]], str]) -> list[Agreement]:
    """Compares first rounds; engines that tell only text are compared by text."""
    first = {(one.cell, one.contender): one.answers for one in samples if one.round == 0}
    found: list[Agreement] = []
    for cell, contender in sorted(first):
        reference = first.get((cell, REFERENCE)) or first.get((cell, Contender(OURS, "fp32")))
        if reference is not None:
            pairs = zip(first[cell, contender], reference, strict=True)
            found.append(Agreement(contender, cell, min(common(one, other, text_of) for one, other in pairs)))
    return found


def common(answer: Answer, reference: Answer, text_of: Callable[[Sequence[int]], str]) -> int:
    """Number of the reference's tokens that the answer begins with."""
    if answer.tokens:
        pairs = enumerate(zip(answer.tokens, reference.tokens, strict=False))
        return next((index for index, (one, other) in pairs if one != other), len(reference.tokens))
    count = 0
    while count < len(reference.tokens) and answer.text.startswith(text_of(reference.tokens[: count + 1])):
        count += 1
    return count

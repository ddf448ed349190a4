"""Sides that answer what no worker would."""

from collections.abc import Callable

import httpx2
import pytest

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.golden.asking import Answer, Manners, Side
from zerolayer_worker.golden.items import Item

MANNERS = Manners(concurrency=1, timeout_s=5, tries=1)
QUESTION = Item(id="a", prompt="Why?", change=False)
MODELS = b'{"data": [{"id": "m"}]}'


async def ask(models: Callable[[], httpx2.Response], answer: Callable[[], httpx2.Response]) -> Answer:
    def handle(request: httpx2.Request) -> httpx2.Response:
        return models() if request.method == "GET" else answer()

    async with Side("http://side", MANNERS, transport=httpx2.MockTransport(handle)) as side:
        (found,) = await side.answers([QUESTION], Intent.DETERMINISTIC)
    return found


def content(body: bytes, status: int = 200, **headers: str) -> Callable[[], httpx2.Response]:
    return lambda: httpx2.Response(status, content=body, headers=headers)


async def test_an_answer_is_its_text() -> None:
    blocks = b'{"content": [{"text": "Be"}, {"text": "cause."}]}'
    assert await ask(content(MODELS), content(blocks)) == Answer("Because.")


@pytest.mark.parametrize(
    ("models", "answer", "told"),
    [
        (content(b'{"data": []}'), content(b"{}"), "the answer is no message"),
        (content(b"[" * 100_000), content(b"{}"), "the answer is not JSON"),
        (content(MODELS), content(b'{"content": null}'), "the answer is no message"),
        (content(MODELS), content(b"[" * 100_000), "the answer is not JSON"),
        (content(MODELS), content(b'{"error": {"message": "a\\u001b[31m\\n\\nb"}}', 400), "400: a [31m b"),
    ],
)
async def test_what_is_no_answer_is_an_error_of_the_question(
    models: Callable[[], httpx2.Response], answer: Callable[[], httpx2.Response], told: str
) -> None:
    assert (await ask(models, answer)).error == told


async def test_an_answer_that_can_not_be_unpacked_is_an_error_of_the_question() -> None:
    def broken() -> httpx2.Response:
        raise httpx2.DecodingError("incorrect header check")

    assert (await ask(broken, broken)).error == "DecodingError: incorrect header check, 1 times"

"""A full queue refuses a request before its prompt is tokenised; who asks is told to the engine."""

from typing import Any

import pytest

from zerolayer_worker.engine.api import OverloadedError
from zerolayer_worker.server.clients import client_of

USER: list[Any] = [{"role": "user", "content": "hi"}]
BODIES: dict[str, dict[str, Any]] = {
    "/v1/messages": {"model": "fake-model", "max_tokens": 20, "messages": USER},
    "/v1/chat/completions": {"model": "fake-model", "messages": USER},
    "/v1/completions": {"model": "fake-model", "prompt": "hi"},
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", BODIES)
async def test_a_full_queue_refuses_before_tokenising(
    live: Any, engine: Any, path: str, stream: bool
) -> None:
    engine.full = OverloadedError("the queue is full", retry_after=7)
    answer = await live.http.post(path, json=BODIES[path] | {"stream": stream})
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "7"
    assert "zero-layer: the worker is overloaded: the queue is full" in answer.text
    assert engine.encoder.messages == ()
    assert engine.requests == []
    assert live.metric("zero_layer_rejected_requests_total", reason="queue_full") == 1


async def test_counting_tokens_needs_no_place(live: Any, engine: Any) -> None:
    engine.full = OverloadedError("the queue is full", retry_after=7)
    body = {"model": "fake-model", "messages": USER}
    assert (await live.http.post("/v1/messages/count_tokens", json=body)).status_code == 200


async def test_what_is_wrong_is_said_even_by_a_full_worker(live: Any, engine: Any) -> None:
    engine.full = OverloadedError("the queue is full", retry_after=7)
    for wrong, status in (({"max_tokens": 0}, 400), ({"model": "other"}, 404)):
        answer = await live.http.post("/v1/messages", json=BODIES["/v1/messages"] | wrong)
        assert answer.status_code == status


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/v1/messages", {"metadata": {"user_id": "ann"}}),
        ("/v1/chat/completions", {"user": "ann"}),
        ("/v1/chat/completions", {"safety_identifier": "ann"}),
        ("/v1/completions", {"user": "ann"}),
    ],
)
async def test_the_engine_learns_who_asks(live: Any, engine: Any, path: str, said: dict[str, Any]) -> None:
    headers = {"x-api-key": "k1"}
    for body in (BODIES[path], BODIES[path] | said):
        assert (await live.http.post(path, json=body, headers=headers)).status_code == 200
    asked = [client_of(headers, None), client_of(headers, "ann")]
    assert [request.client for request in engine.requests] == engine.asked_for_room == asked
    assert len(set(asked)) == 2


def test_names_of_clients() -> None:
    """Neither key nor user can be read out of them, and no two pairs share one by how they are joined."""
    bearer, plain = {"authorization": "Bearer k"}, {"x-api-key": "k"}
    assert client_of({}, None) == client_of({}, 7) == ""
    assert client_of(bearer, None) == client_of(plain, None)
    names = [client_of({"x-api-key": key}, user) for key, user in (("a", "bc"), ("ab", "c"), ("abc", ""))]
    names += [client_of({}, "abc"), client_of({}, "\ud800")]
    assert len(set(names)) == 5
    assert all(len(name) == 16 and int(name, 16) >= 0 for name in names)

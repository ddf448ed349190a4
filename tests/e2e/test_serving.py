"""What clients see: the official SDKs through a pool's Service."""

from collections.abc import Iterator

import anthropic
import httpx
import openai
import pytest

from zerolayer_dev.testing.pools import DEMO_MODEL, Pool
from zerolayer_dev.testing.release import Release

PROMPT = "Name one river in France."


@pytest.fixture
def claude(serving_pool: Pool) -> Iterator[anthropic.Anthropic]:
    connection = anthropic.DefaultHttpxClient(trust_env=False)
    with anthropic.Anthropic(base_url=serving_pool.url, api_key="unused", http_client=connection) as client:
        yield client


@pytest.fixture
def gpt(serving_pool: Pool) -> Iterator[openai.OpenAI]:
    connection = openai.DefaultHttpxClient(trust_env=False)
    with openai.OpenAI(base_url=f"{serving_pool.url}/v1", api_key="unused", http_client=connection) as client:
        yield client


@pytest.mark.promise("sdk-clients")
def test_anthropic_sdk_through_the_service(claude: anthropic.Anthropic, serving_pool: Pool) -> None:
    """The unmodified anthropic SDK works through a pool's Service, streaming and not."""
    asked = {
        "model": DEMO_MODEL,
        "max_tokens": 16,
        "messages": [{"role": "user", "content": PROMPT}],
        "extra_headers": {"anthropic-sampling-intent": "deterministic"},
    }
    raw = claude.messages.with_raw_response.create(**asked)
    message = raw.parse()
    with claude.messages.stream(**asked) as stream:
        streamed = stream.get_final_message()

    assert raw.headers["x-anthropic-layer-zero"] == "true"
    assert raw.headers["x-anthropic-sampling-intent"] == "deterministic"
    assert raw.headers["x-zero-layer-revision"] == serving_pool.status["servingRevision"]
    assert message.usage.output_tokens > 0
    assert [block.text for block in message.content] == [block.text for block in streamed.content]


@pytest.mark.promise("sdk-clients")
def test_openai_sdk_through_the_service(gpt: openai.OpenAI) -> None:
    """The unmodified openai SDK works through a pool's Service, streaming and not."""
    messages = [{"role": "user", "content": PROMPT}]
    body = {"intent": "deterministic"}
    whole = gpt.chat.completions.create(model=DEMO_MODEL, max_tokens=16, messages=messages, extra_body=body)
    chunks = list(
        gpt.chat.completions.create(
            model=DEMO_MODEL,
            max_tokens=16,
            messages=messages,
            extra_body=body,
            stream=True,
            stream_options={"include_usage": True},
        )
    )

    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage == whole.usage


def test_unknown_model_is_not_found(claude: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError, match=DEMO_MODEL):
        claude.messages.create(
            model="no-such-model", max_tokens=1, messages=[{"role": "user", "content": "x"}]
        )


@pytest.mark.promise("restricted-pods")
def test_workers_pass_the_restricted_level(serving_pool: Pool) -> None:
    """Worker pods run in a namespace that enforces the restricted Pod Security level."""
    report = serving_pool.kubectl(
        "label", "--dry-run=server", "--overwrite", "namespace", serving_pool.namespace,
        "pod-security.kubernetes.io/enforce=restricted",
    )  # fmt: skip
    (pod,) = serving_pool.pods()
    (container,) = pod["spec"]["containers"]

    assert "violate" not in report
    assert pod["status"]["phase"] == "Running"
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["spec"]["automountServiceAccountToken"] is False


@pytest.mark.promise("sizes")
def test_worker_starts_in_time(serving_pool: Pool, figures) -> None:
    """From scheduled to ready takes a worker on the demo's model at most 30 s on two idle cores."""
    (pod,) = serving_pool.pods()
    started = httpx.get(f"http://{pod['status']['podIP']}:8081/startupz", trust_env=False).json()

    figures(
        **{f"{stage}_s": float(seconds) for stage, seconds in started["stages"].items()},
        scheduled_to_ready_s=serving_pool.status["warmup"]["p50Seconds"],
    )
    assert started["ready"] is True
    assert serving_pool.status["warmup"]["p50Seconds"] > 0


@pytest.mark.promise("sizes")
def test_operator_is_small(release: Release, serving_pool: Pool, figures) -> None:
    """The operator takes at most 120 MB of resident memory."""
    resident = release.metric("process_resident_memory_bytes")

    figures(operator_resident_mb=resident / 1e6)
    assert 0 < resident <= 120e6

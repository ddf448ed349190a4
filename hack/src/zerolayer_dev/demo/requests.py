"""The demo's two requests, through the official SDK, printed as a terminal would show them."""

from collections.abc import Mapping

import anthropic

PROMPT = "Write one sentence about a lighthouse."
MAX_TOKENS = 48
_SHOWN = ("content-type", "request-id", "anthropic-", "x-anthropic-", "x-zero-layer-")


def ask(url: str, model: str, intent: str, prompt: str = PROMPT, max_tokens: int = MAX_TOKENS) -> str:
    """Asks with an intent, prints request, response headers and answer, and returns the answer's text.

    Raises:
        anthropic.APIError: the worker refused, or could not be reached.
    """
    with anthropic.DefaultHttpxClient(trust_env=False, timeout=120) as connection:
        client = anthropic.Anthropic(base_url=url, api_key="none-needed", http_client=connection)
        raw = client.messages.with_raw_response.create(
            model=model,
            max_tokens=max_tokens,
            messages=[{"role": "user", "content": prompt}],
            extra_headers={"anthropic-sampling-intent": intent},
        )
        message = raw.parse()
    text = "".join(block.text for block in message.content if block.type == "text")
    print(f"> POST {url}/v1/messages\n> anthropic-sampling-intent: {intent}\n> {prompt}\n")
    print(f"< {raw.http_response.http_version} {raw.http_response.status_code}")
    for line in shown(raw.headers):
        print(f"< {line}")
    print(f"< {text}\n  ({message.usage.output_tokens} tokens, {message.stop_reason})\n", flush=True)
    return text


def shown(headers: Mapping[str, str]) -> list[str]:
    """Returns the headers that say something about the answer, one per line."""
    return [f"{name}: {value}" for name, value in headers.items() if name.lower().startswith(_SHOWN)]

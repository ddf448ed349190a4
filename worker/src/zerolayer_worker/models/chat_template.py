"""Renders conversations with the template that comes with a model, in a sandbox."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn, cast

from jinja2 import TemplateError, meta
from jinja2.exceptions import TemplateSyntaxError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from zerolayer_worker.models.config import ModelFolderError, read_json

_SPECIAL_TOKENS = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token")


class ChatTemplateError(ValueError):
    """The conversation can't be rendered; the message may be shown to the client."""


class ChatTemplate:
    """A model's chat template and what it can do."""

    def __init__(self, source: str, special_tokens: Mapping[str, str]) -> None:
        environment = _environment()
        try:
            names = meta.find_undeclared_variables(environment.parse(source))
            self._template = environment.from_string(source)
        except TemplateSyntaxError as error:
            raise ModelFolderError(f"the chat template is not valid: {error}") from None
        self.supports_tools: bool = "tools" in names
        self._special_tokens = dict(special_tokens)

    def render(
        self, messages: Sequence[Mapping[str, object]], tools: Sequence[Mapping[str, object]] = ()
    ) -> str:
        """The conversation as one text that ends where the assistant's answer begins.

        Raises:
            ChatTemplateError: the template refuses the conversation, or `tools` without support for them.
        """
        if tools and not self.supports_tools:
            raise ChatTemplateError("tools: this model's chat template does not support tools")
        try:
            return self._template.render(
                messages=list(messages),
                tools=list(tools) or None,
                documents=None,
                add_generation_prompt=True,
                **self._special_tokens,
            )
        except (TemplateError, TypeError) as error:
            raise ChatTemplateError(f"messages: the model's chat template refused them: {error}") from None


def read_chat_template(folder: Path) -> ChatTemplate | None:
    """The folder's `chat_template.jinja`, or what `tokenizer_config.json` holds; None without either."""
    path = folder / "tokenizer_config.json"
    config: dict[str, Any] = read_json(path) if path.exists() else {}
    separate = folder / "chat_template.jinja"
    source: object = (
        separate.read_text(encoding="utf-8") if separate.exists() else config.get("chat_template")
    )
    if isinstance(source, list):
        named = {item["name"]: item["template"] for item in cast("list[dict[str, str]]", source)}
        source = named.get("default")
    if not isinstance(source, str):
        return None
    return ChatTemplate(source, _special_tokens(config))


def _special_tokens(config: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in _SPECIAL_TOKENS:
        value: object = config.get(name)
        if isinstance(value, dict):
            value = cast("dict[str, object]", value).get("content")
        if isinstance(value, str):
            found[name] = value
    return found


def _environment() -> ImmutableSandboxedEnvironment:
    # The text is a prompt, not a web page: escaping would change it.
    environment: Any = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment


def _to_json(value: object, indent: int | None = None) -> str:
    """Unlike jinja's own filter this escapes nothing for HTML."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise_exception(message: str) -> NoReturn:
    raise TemplateError(message)


def _strftime_now(pattern: str) -> str:
    return datetime.now().astimezone().strftime(pattern)

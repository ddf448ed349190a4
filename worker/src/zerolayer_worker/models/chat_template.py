"""Renders conversations with the template that comes with a model, in a sandbox."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

from jinja2 import TemplateError, meta
from jinja2.exceptions import TemplateSyntaxError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import BeforeValidator

from zerolayer_worker.models.folder import FolderFile, ModelFolderError, read_file, read_text


class SpecialToken(FolderFile):
    """A special token; its text alone is short for it."""

    content: str


class NamedTemplate(FolderFile):
    """One of several chat templates."""

    name: str
    template: str


def _as_token(value: object) -> object:
    return {"content": value} if isinstance(value, str) else value


def _as_templates(value: object) -> object:
    return [{"name": "default", "template": value}] if isinstance(value, str) else value


Token = Annotated[SpecialToken, BeforeValidator(_as_token)] | None


class TokenizerConfigFile(FolderFile):
    """The keys of `tokenizer_config.json` that are read."""

    chat_template: Annotated[list[NamedTemplate], BeforeValidator(_as_templates)] | None = None
    bos_token: Token = None
    eos_token: Token = None
    unk_token: Token = None
    pad_token: Token = None
    sep_token: Token = None
    cls_token: Token = None


class ChatTemplateError(ValueError):
    """The conversation can't be rendered; the message may be shown to the client."""


class ChatTemplate:
    """A model's chat template and what it can do."""

    def __init__(self, source: str, special_tokens: Mapping[str, str]) -> None:
        """Compiles `source`.

        Raises:
            TemplateSyntaxError: it is not valid.
        """
        environment = _environment()
        names = meta.find_undeclared_variables(environment.parse(source))
        self._template = environment.from_string(source)
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
    """The folder's `chat_template.jinja`, or what `tokenizer_config.json` holds; None without either.

    Raises:
        ModelFolderError: a file is malformed, or the template is not valid.
    """
    path, separate = folder / "tokenizer_config.json", folder / "chat_template.jinja"
    config = read_file(path, TokenizerConfigFile) if path.exists() else TokenizerConfigFile()
    named = {each.name: each.template for each in config.chat_template or ()}
    source = read_text(separate) if separate.exists() else named.get("default")
    if source is None:
        return None
    tokens = config.model_dump(exclude={"chat_template"}, exclude_none=True)
    try:
        return ChatTemplate(source, {name: token["content"] for name, token in tokens.items()})
    except TemplateSyntaxError as error:
        where = separate if separate.exists() else f"{path}: chat_template"
        raise ModelFolderError(f"{where}: not a valid template: {error}") from None


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

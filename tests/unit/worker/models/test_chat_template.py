import json
from pathlib import Path

import pytest

from zerolayer_worker.models.chat_template import (
    ChatTemplate,
    ChatTemplateError,
    TokenizerConfigFile,
    read_chat_template,
)
from zerolayer_worker.models.folder import ModelFolderError

USER = [{"role": "user", "content": "Hi <b>"}]


def render(source: str, **tokens: str) -> str:
    return ChatTemplate(source, tokens).render(USER)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ messages[0]['content'] }}", "Hi <b>"),
        ("{{ bos_token }}|{{ messages | length }}", "<s>|1"),
        ("{% if add_generation_prompt %}go{% endif %}", "go"),
        ("{% if tools %}tools{% else %}none{% endif %}", "none"),
        ("{{ messages | tojson }}", '[{"role": "user", "content": "Hi <b>"}]'),
        ("{% for m in messages %}\n  {% if true %}\nx\n  {% endif %}\n{% endfor %}", "x\n"),
        ("{% for m in [1, 2, 3] %}{% if m == 2 %}{% break %}{% endif %}{{ m }}{% endfor %}", "1"),
        ("{{ strftime_now('%Y') | length }}", "4"),
    ],
)
def test_renders_as_the_field_does(source: str, expected: str) -> None:
    assert render(source, bos_token="<s>") == expected


def test_what_the_template_raises_reaches_the_client() -> None:
    with pytest.raises(ChatTemplateError, match=r"messages: .*roles must alternate"):
        render("{{ raise_exception('roles must alternate') }}")


@pytest.mark.parametrize("source", ["{{ ''.__class__.__mro__ }}", "{{ messages.append(1) }}"])
def test_the_sandbox_holds(source: str) -> None:
    with pytest.raises(ChatTemplateError):
        render(source)


def test_tools_only_where_the_template_knows_them() -> None:
    tools = [{"name": "clock"}]
    knows = ChatTemplate("{{ tools[0].name }}", {})
    assert knows.supports_tools
    assert knows.render(USER, tools) == "clock"
    ignorant = ChatTemplate("{{ messages[0].content }}", {})
    assert not ignorant.supports_tools
    with pytest.raises(ChatTemplateError, match=r"tools: .* does not support tools"):
        ignorant.render(USER, tools)


def test_names_a_template_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{% if %}"}))
    with pytest.raises(
        ModelFolderError, match=r"tokenizer_config\.json: chat_template: not a valid template"
    ):
        read_chat_template(tmp_path)
    (tmp_path / "chat_template.jinja").write_text("{% if %}")
    with pytest.raises(ModelFolderError, match=r"chat_template\.jinja: not a valid template"):
        read_chat_template(tmp_path)
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff")
    with pytest.raises(ModelFolderError, match=r"chat_template\.jinja: not UTF-8"):
        read_chat_template(tmp_path)


def test_finds_the_template(tmp_path: Path) -> None:
    settings = tmp_path / "tokenizer_config.json"
    assert read_chat_template(tmp_path) is None
    settings.write_text(json.dumps({"bos_token": {"content": "<s>"}}))
    assert read_chat_template(tmp_path) is None
    named = [{"name": "tool_use", "template": "no"}, {"name": "default", "template": "{{ bos_token }} named"}]
    settings.write_text(json.dumps({"bos_token": {"content": "<s>"}, "chat_template": named}))
    assert rendered(tmp_path) == "<s> named"
    settings.write_text(json.dumps({"bos_token": "<s>", "chat_template": "{{ bos_token }} plain"}))
    assert rendered(tmp_path) == "<s> plain"
    (tmp_path / "chat_template.jinja").write_text("{{ bos_token }} file")
    assert rendered(tmp_path) == "<s> file"


def rendered(folder: Path) -> str:
    template = read_chat_template(folder)
    assert template is not None
    return template.render(USER)


@pytest.mark.parametrize("text", ["[1]", "[1,"])
def test_names_a_malformed_tokenizer_config(tmp_path: Path, text: str) -> None:
    (tmp_path / "tokenizer_config.json").write_text(text)
    with pytest.raises(ModelFolderError, match=r"tokenizer_config\.json: "):
        read_chat_template(tmp_path)


@pytest.mark.parametrize("value", [5, True, [], {}, {"content": 5}, {"text": "<s>"}])
@pytest.mark.parametrize("key", sorted(TokenizerConfigFile.model_fields.keys() - {"chat_template"}))
def test_names_a_special_token_that_is_none(tmp_path: Path, key: str, value: object) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({key: value}))
    with pytest.raises(ModelFolderError, match=rf"tokenizer_config\.json: {key}"):
        read_chat_template(tmp_path)


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (5, ""),
        ({"default": "x"}, ""),
        (["x"], r"\.0"),
        ([{"name": "default"}], r"\.0\.template"),
        ([{"name": 5, "template": "x"}], r"\.0\.name"),
    ],
)
def test_names_a_chat_template_of_another_kind(tmp_path: Path, value: object, where: str) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": value}))
    with pytest.raises(ModelFolderError, match=rf"tokenizer_config\.json: chat_template{where}[: ]"):
        read_chat_template(tmp_path)

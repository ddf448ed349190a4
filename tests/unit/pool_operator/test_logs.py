import json
import logging
import sys
from collections.abc import Iterator

import pytest

from zerolayer_operator import logs
from zerolayer_operator.logs import REDACTED, RedactingJsonFormatter, redact

JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"


@pytest.fixture
def _logging_left_alone() -> Iterator[None]:
    root, hook = logging.getLogger(), sys.excepthook
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in ("kopf", "aiohttp", "kubernetes", "asyncio")}
    yield
    root.handlers[:], sys.excepthook = handlers, hook
    root.setLevel(level)
    for name, library_level in levels.items():
        logging.getLogger(name).setLevel(library_level)
    logging.captureWarnings(capture=False)


def formatted(record: logging.LogRecord) -> dict[str, object]:
    line = RedactingJsonFormatter().format(record)
    assert "\n" not in line
    return json.loads(line)


def record(message: str, *args: object, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("zerolayer_operator.x", logging.INFO, "x.py", 1, message, args, None)
    made.__dict__.update(extra)
    return made


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abcdef123456", "abcdef123456"),
        ("authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        (f"login with {JWT} failed", JWT),
        ("fetching with hf_abcdefghijklmnopqrstuv", "hf_abcdefghijklmnopqrstuv"),
        ("key sk-ant-abcdefghijklmnop was refused", "sk-ant-abcdefghijklmnop"),
        ("https://me:hunter2@registry.example.org/x", "hunter2"),
        ("token=hunter2", "hunter2"),
        ('{"api_key": "hunter two"}', "hunter two"),
        ("{'password': 'hunter2'}", "hunter2"),
        ("apiKey: hunter2, next", "hunter2"),
        ("HF_TOKEN=hunter2", "hunter2"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "MIIE"),
    ],
)
def test_secret_is_redacted(text: str, secret: str) -> None:
    assert secret not in redact(text)
    assert REDACTED in redact(text)
    assert secret not in json.dumps(formatted(record("%s", text)))
    assert secret not in json.dumps(formatted(record("m", pool={"deep": [text]})))


@pytest.mark.parametrize(
    "text",
    [
        "Secret default/api-keys does not exist",
        "create the Secret named in apiKeySecretRef: api-keys",
        "max_new_tokens: 16, usage tokens = 12",
        "zerolayer.dev/worker@sha256:0123456789abcdef",
        "the token is missing",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redact(text) == text


def test_value_under_a_secret_key_is_redacted_but_a_reference_is_not() -> None:
    assert redact({"token": "x", "tokenSecretRef": {"name": "hf", "key": "token"}, "n": 3}) == {
        "token": REDACTED,
        "tokenSecretRef": {"name": "hf", "key": "token"},
        "n": 3,
    }


def test_record_has_its_fields_and_the_object() -> None:
    ref = {"apiVersion": "v1", "kind": "ZeroLayerPool", "name": "p", "uid": "u", "namespace": "ns"}
    line = formatted(record("pool %s", "p", k8s_ref=ref, k8s_skip=False, settings=object(), revision="abc"))
    assert line["message"] == "pool p"
    assert (line["level"], line["logger"], line["revision"]) == ("INFO", "zerolayer_operator.x", "abc")
    assert line["object"] == {"kind": "ZeroLayerPool", "namespace": "ns", "name": "p"}
    assert "settings" not in line
    assert str(line["timestamp"]).endswith("+00:00")


def test_traceback_stays_in_the_line_and_is_redacted() -> None:
    try:
        int("password=hunter2")
    except ValueError:
        made = record("m")
        made.exc_info = sys.exc_info()
    line = formatted(made)
    assert "Traceback" in str(line["exception"])
    assert "hunter2" not in json.dumps(line)


@pytest.mark.usefixtures("_logging_left_alone")
@pytest.mark.parametrize(
    ("level", "logger", "heard"),
    [
        ("INFO", "zerolayer_operator.reconcile", {"INFO", "WARNING", "ERROR"}),
        ("INFO", "kopf.objects", {"WARNING", "ERROR"}),
        ("INFO", "aiohttp.access", {"WARNING", "ERROR"}),
        ("ERROR", "kopf.objects", {"ERROR"}),
        ("DEBUG", "kopf.objects", {"DEBUG", "INFO", "WARNING", "ERROR"}),
    ],
)
def test_libraries_are_quiet_unless_debugging(
    capsys: pytest.CaptureFixture[str], level: str, logger: str, heard: set[str]
) -> None:
    logs.configure(level)
    for name in ("DEBUG", "INFO", "WARNING", "ERROR"):
        logging.getLogger(logger).log(getattr(logging, name), "x")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert {line["level"] for line in lines} == heard


@pytest.mark.usefixtures("_logging_left_alone")
def test_last_words_of_the_process_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("INFO")
    error = RuntimeError("token=hunter2")
    sys.excepthook(RuntimeError, error, None)
    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["message"]) == ("CRITICAL", f"the operator ends: token={REDACTED}")
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert capsys.readouterr().err == ""

"""Log lines: one JSON object each, with what was passed as `extra`."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from zerolayer_worker.common.logs import JsonFormatter, configure_logging


def record(message: str, *args: object, **extra: object) -> logging.LogRecord:
    return logging.getLogger("a.b").makeRecord(
        "a.b", logging.WARNING, "f.py", 1, message, args, None, extra=extra
    )


def test_a_record_is_one_line_of_json() -> None:
    line = JsonFormatter().format(record("two %s\nlines", "ö", request_id="req_1", seconds=0.5))
    assert "\n" not in line
    parsed = json.loads(line)
    assert (parsed["message"], parsed["level"], parsed["logger"]) == ("two ö\nlines", "warning", "a.b")
    assert (parsed["request_id"], parsed["seconds"]) == ("req_1", 0.5)
    assert parsed["time"].endswith("+00:00")


def test_what_json_cannot_hold_becomes_text() -> None:
    assert json.loads(JsonFormatter().format(record("x", value={1, 2})))["value"] == "{1, 2}"


def test_an_exception_is_a_field() -> None:
    with pytest.raises(KeyError) as caught:
        _ = {}["gone"]
    entry = record("failed")
    entry.exc_info = (caught.type, caught.value, caught.tb)
    parsed = json.loads(JsonFormatter().format(entry))
    assert "KeyError: 'gone'" in parsed["exception"]


@pytest.fixture
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.getLogger("uvicorn.access").disabled = False
    for name in ("uvicorn", "uvicorn.error", "httpx", "filelock", "asyncio"):
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.mark.usefixtures("restored")
def test_the_level_counts_and_libraries_are_quieter() -> None:
    stream = io.StringIO()
    configure_logging("info", stream)
    logging.getLogger("zerolayer_worker").debug("no")
    logging.getLogger("zerolayer_worker").info("yes")
    logging.getLogger("uvicorn.error").info("no")
    logging.getLogger("uvicorn.access").warning("no")
    logging.getLogger("uvicorn.error").warning("this too")
    messages = [json.loads(line)["message"] for line in stream.getvalue().splitlines()]
    assert messages == ["yes", "this too"]

from pathlib import Path

import pytest

from zerolayer_worker.common.json_lines import JsonLine, JsonLinesError, JsonLinesFile, JsonLinesLimits

LIMITS = JsonLinesLimits(max_bytes=200, max_lines=3)


class Line(JsonLine):
    name: str
    count: int = 0


def read(path: Path, content: bytes) -> JsonLinesFile[Line]:
    path.write_bytes(content)
    return JsonLinesFile(path, Line, LIMITS)


def test_lines_keep_their_numbers(tmp_path: Path) -> None:
    file = read(tmp_path / "f", b'{"name": "a"}\n\n{"name": "\xc3\xa4", "count": 2}\r\n')
    assert file.lines == {1: Line(name="a"), 3: Line(name="ä", count=2)}


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    file = read(tmp_path / "f", b'\xef\xbb\xbf{"name": "a"}')
    assert file.lines == {1: Line(name="a")}
    assert file.content == (tmp_path / "f").read_bytes()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", ": holds no line"),
        (b"\n \n", ": holds no line"),
        (b'{"name": "a"}\n' * 4, ": holds 4 lines, more than 3"),
        (b" " * 201, ": larger than 200 bytes"),
        (b'{"name": "a"}\n{"name": 1}', ":2: name: Input should be a valid string"),
        (b'{"name": "a", "count": "1"}', ":1: count: Input should be a valid integer"),
        (b'{"count": 1}', ":1: name: Field required"),
        (b'{"name": "a", "nmae": 1}', ":1: nmae: Extra inputs are not permitted"),
        (b"\n[1]", ":2: Input should be an object"),
        (b"{", ":1: Invalid JSON"),
        (b'{"name": "\xff"}', ":1: Invalid JSON"),
        (b'{"name": "a"}\n{"name": a}', ":2: Invalid JSON: expected value at character 10"),
    ],
)
def test_what_is_malformed_is_named_by_line_and_field(tmp_path: Path, content: bytes, told: str) -> None:
    with pytest.raises(JsonLinesError) as caught:
        read(tmp_path / "f", content)
    assert str(caught.value).startswith(f"{tmp_path}/f{told}")


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(JsonLinesError, match="nowhere: No such file"):
        JsonLinesFile(tmp_path / "nowhere", Line, LIMITS)

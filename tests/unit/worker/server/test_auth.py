"""API keys from a directory, as a mounted Secret presents them."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zerolayer_dev.testing.clock import FakeClock
from zerolayer_worker.server.auth import KeyFormError, KeyRing, parse_key, presented_key, sent_bytes
from zerolayer_worker.server.errors import ApiError


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ({"x-api-key": "a"}, "a"),
        ({"authorization": "Bearer b"}, "b"),
        ({"authorization": "bearer  b "}, "b"),
        ({"x-api-key": "a", "authorization": "Bearer b"}, "a"),
        ({"authorization": "Basic b"}, None),
        ({"authorization": "Bearer "}, None),
        ({"x-api-key": ""}, None),
        ({}, None),
    ],
)
def test_where_a_key_is_looked_for(headers: dict[str, str], key: str | None) -> None:
    assert presented_key(headers) == key


def mount(folder: Path, version: str, **keys: str) -> None:
    """What the kubelet does: a new folder, and one symbolic link swapped."""
    data = folder / f"..{version}"
    data.mkdir()
    for name, key in keys.items():
        (data / name).write_text(key)
        link = folder / name
        if not link.is_symlink():
            link.symlink_to(f"..data/{name}")
    link = folder / "..new"
    link.symlink_to(data.name)
    link.rename(folder / "..data")


def test_a_file_that_is_no_text_keeps_no_revoked_key_alive(tmp_path: Path) -> None:
    clock = FakeClock()
    keys = KeyRing(tmp_path, clock=clock)
    (tmp_path / "alice").write_text("sk-alice")
    assert keys.accepts("sk-alice")
    (tmp_path / "alice").unlink()
    (tmp_path / "bob").write_text("sk-bob")
    (tmp_path / "noise").write_bytes(b"\xff\xfe\xfa")
    clock.now += 2
    assert keys.accepts("sk-bob")
    assert not keys.accepts("sk-alice")


@pytest.mark.parametrize("key", ["sk-schlüssel", "sk-à", "sk-鍵"])
def test_a_key_beyond_ascii_is_compared_as_it_is_sent(tmp_path: Path, key: str) -> None:
    (tmp_path / "key").write_text(key + "\n", encoding="utf-8")
    sent = presented_key({"x-api-key": key.encode().decode("latin-1")})
    assert sent is not None
    assert KeyRing(tmp_path).accepts(sent)


def test_every_file_is_a_key_but_dot_files_folders_and_empty_ones(tmp_path: Path) -> None:
    (tmp_path / "alice").write_text("sk-alice\n")
    (tmp_path / "bob").write_text("sk-bob")
    (tmp_path / "empty").write_text("\n")
    (tmp_path / ".hidden").write_text("sk-hidden")
    (tmp_path / "folder").mkdir()
    keys = KeyRing(tmp_path)
    assert keys.accepts("sk-alice")
    assert keys.accepts("sk-bob")
    assert not any(keys.accepts(key) for key in ("", "sk-hidden", "sk-alic", "sk-alice\n", "sk-älice"))


def test_a_rotated_secret_is_noticed(tmp_path: Path) -> None:
    clock = FakeClock()
    mount(tmp_path, "1", key="old")
    keys = KeyRing(tmp_path, check_every=1, clock=clock)
    assert keys.accepts("old")
    mount(tmp_path, "2", key="new")
    clock.now = 0.5
    assert keys.accepts("old")
    clock.now = 1.5
    assert keys.accepts("new")
    assert not keys.accepts("old")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "is empty"),
        (b" \n\t\r\n", "is empty"),
        (b"sk-one\nsk-two\n", "holds several lines"),
        (b"sk-one\r\nsk-two", "holds several lines"),
        (b"sk-one\rsk-two", "holds several lines"),
        (b"sk-\x00one", "holds a control character"),
        (b"sk-one\x7f", "holds a control character"),
    ],
)
def test_what_is_no_key_is_refused_by_name_and_never_shown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes, fault: str
) -> None:
    faults: list[int] = []
    keys = KeyRing(tmp_path, on_faults=faults.append)
    (tmp_path / "alice").write_bytes(content)
    (tmp_path / "bob").write_bytes(b"sk-bob\n")
    assert keys.accepts("sk-bob")
    assert not keys.accepts("sk-one")
    assert not keys.accepts("sk-two")
    assert f"alice {fault}" in caplog.text
    assert "sk-" not in caplog.text
    assert faults == [1]


@given(st.binary(max_size=40))
@example(b"sk-\x85\n")
@example("\N{BYTE ORDER MARK}sk\r\n".encode())
def test_whatever_is_a_key_can_be_sent(content: bytes) -> None:
    try:
        key = parse_key(content)
    except KeyFormError:
        return
    assert content.strip() == key
    sent = presented_key({"x-api-key": key.decode("latin-1")})
    assert sent is not None
    assert sent_bytes(sent) == key


@given(
    st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1),
    st.text(" \t\r\n", max_size=4),
    st.text(" \t\r\n", max_size=4),
)
def test_white_space_around_a_key_does_not_count(key: str, before: str, after: str) -> None:
    assert parse_key((before + key + after).encode()) == key.encode()


def broken(path: Path) -> None:
    """Reading this file is an input/output error, for root too."""
    path.unlink(missing_ok=True)
    path.symlink_to("/proc/self/mem")


def test_a_key_that_cannot_be_read_stays_as_it_was_and_others_follow_the_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock, faults = FakeClock(), list[int]()
    keys = KeyRing(tmp_path, on_faults=faults.append, clock=clock)

    def valid() -> set[str]:
        clock.now += 2
        return {key for key in ("alice", "alice-2", "bob", "carol") if keys.accepts(key)}

    (tmp_path / "alice").write_text("alice")
    (tmp_path / "bob").write_text("bob")
    broken(tmp_path / "carol")
    assert valid() == {"alice", "bob"}
    broken(tmp_path / "alice")
    (tmp_path / "bob").unlink()
    assert valid() == {"alice"}
    assert valid() == {"alice"}
    assert faults == [1, 2]
    assert caplog.text.count("alice can't be read (Input/output error)") == 1
    (tmp_path / "alice").unlink()
    (tmp_path / "alice").write_text("alice-2")
    (tmp_path / "carol").unlink()
    assert valid() == {"alice-2"}
    assert faults == [1, 2, 0]


def test_no_valid_key_at_all_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert not KeyRing(tmp_path).accepts("sk-guess")
    assert "no API key is valid: every request is refused" in caplog.text


def test_keys_stay_valid_while_the_folder_is_gone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    folder = tmp_path / "keys"
    keys = KeyRing(folder, clock=clock)
    assert not keys.accepts("a")
    folder.mkdir()
    (folder / "a").write_text("a")
    clock.now = 2
    assert keys.accepts("a")
    (folder / "a").unlink()
    folder.rmdir()
    clock.now = 4
    assert keys.accepts("a")
    assert "can't be read" in caplog.text


def test_refusals_and_logs_hold_no_key(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    (tmp_path / "a").write_text("sk-secret")
    keys = KeyRing(tmp_path)
    for headers in ({}, {"x-api-key": "sk-guess"}):
        with pytest.raises(ApiError) as caught:
            keys.check(headers)
        assert caught.value.status == 401
        assert "sk-" not in caught.value.message
    keys.check({"authorization": "Bearer sk-secret"})
    assert "sk-" not in caplog.text

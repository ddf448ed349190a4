from pathlib import Path

import pytest

from zerolayer_dev.paths import cache_dir, repo_root


def test_the_root_is_the_checkout() -> None:
    assert (repo_root() / "hack" / "cluster" / "go.mod").exists()


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ZEROLAYER_CACHE", str(tmp_path / "a" / "b"))
    assert cache_dir() == tmp_path / "a" / "b"
    assert cache_dir().is_dir()


def test_the_cache_is_in_the_home_otherwise(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ZEROLAYER_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir() == tmp_path / ".cache" / "zerolayer"
    assert repo_root() not in cache_dir().parents

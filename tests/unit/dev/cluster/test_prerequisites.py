from dataclasses import replace

import pytest

from zerolayer_dev.cluster import prerequisites
from zerolayer_dev.cluster.prerequisites import (
    BROWSER,
    CONTROL_PLANE,
    EVERYTHING,
    GO,
    IMAGES,
    NODE,
    ROOT,
    Machine,
    MissingPrerequisitesError,
    explain,
    install_command,
    missing,
    parse_go_version,
)

COMPLETE = Machine(
    user_id=0,
    which=lambda name: f"/usr/bin/{name}",
    go_version=(1, 26),
    cni_plugins=frozenset({"ptp", "host-local", "portmap", "loopback"}),
)


def without(*programs: str) -> Machine:
    return replace(COMPLETE, which=lambda name: None if name in programs else f"/usr/bin/{name}")


def names(machine: Machine) -> set[str]:
    return {prerequisite.name for prerequisite in missing(EVERYTHING, machine)}


def test_a_complete_machine_lacks_nothing() -> None:
    assert missing(EVERYTHING, COMPLETE) == []


@pytest.mark.parametrize(
    ("machine", "lacking"),
    [
        (replace(COMPLETE, user_id=1000), {"root"}),
        (replace(COMPLETE, go_version=None), {"Go ≥ 1.26"}),
        (replace(COMPLETE, go_version=(1, 25)), {"Go ≥ 1.26"}),
        (replace(COMPLETE, go_version=(2, 0)), set()),
        (replace(COMPLETE, cni_plugins=frozenset({"bridge"})), {"CNI plugins"}),
        (without("runc"), {"runc"}),
        (without("nft", "conntrack"), {"nft", "conntrack"}),
        (without("buildah", "mmdebstrap"), {"buildah", "mmdebstrap"}),
        (without("uv"), {"uv"}),
    ],
)
def test_what_is_missing_is_named(machine: Machine, lacking: set[str]) -> None:
    assert names(machine) == lacking


def test_a_control_plane_needs_less_than_a_node_and_neither_builds_images() -> None:
    assert set(CONTROL_PLANE) < set(NODE)
    assert "buildah" not in {prerequisite.name for prerequisite in NODE}
    assert ROOT in IMAGES


def test_the_command_installs_each_package_once() -> None:
    lacking = missing(EVERYTHING, without("unshare", "nsenter", "nft"))
    assert install_command(lacking)[:2] == ["apt-get", "install"]
    assert install_command(lacking)[4:] == ["util-linux", "nftables"]


def test_what_no_package_provides_has_a_remedy_in_words() -> None:
    for prerequisite in EVERYTHING:
        assert prerequisite.packages or prerequisite.remedy


def test_the_message_names_what_is_missing_and_what_to_do() -> None:
    machine = replace(without("runc"), go_version=None)
    message = explain(missing(EVERYTHING, machine))
    assert message.startswith("missing on this machine: runc, Go ≥ 1.26")
    assert "https://go.dev/dl/" in message
    assert "apt-get install --yes --no-install-recommends runc" in message


def test_no_install_command_without_packages() -> None:
    assert install_command([GO]) == []
    assert "apt-get" not in explain([GO])


@pytest.mark.parametrize(
    ("text", "version"),
    [("go1.26.8\n", (1, 26)), ("go1.27rc1", (1, 27)), ("go2.0", (2, 0)), ("devel", None), ("", None)],
)
def test_go_versions(text: str, version: tuple[int, int] | None) -> None:
    assert parse_go_version(text) == version


def test_a_browser_is_asked_for_by_its_test_alone() -> None:
    assert BROWSER not in EVERYTHING
    assert missing([BROWSER], without("chromium", "chromium-browser")) == []
    lacking = missing([BROWSER], without(*prerequisites.BROWSERS))
    assert "apt-get install --yes --no-install-recommends chromium" in explain(lacking)


def test_what_cannot_be_installed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerequisites, "look", lambda: without(*prerequisites.BROWSERS))
    monkeypatch.setattr(prerequisites.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(prerequisites.shutil, "which", lambda _: None)
    for ask in (lambda: prerequisites.provide(BROWSER), prerequisites.browser):
        with pytest.raises(MissingPrerequisitesError, match=r"apt-get install .* chromium"):
            ask()


def test_require_raises_with_the_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerequisites, "look", lambda: replace(COMPLETE, go_version=None))
    with pytest.raises(MissingPrerequisitesError, match=r"https://go\.dev/dl/") as raised:
        prerequisites.require(GO, ROOT)
    assert raised.value.missing == (GO,)

import re
from pathlib import Path

import pytest

from zerolayer_dev.images import specs
from zerolayer_dev.images.specs import IMAGES, reference
from zerolayer_dev.paths import repo_root

COPIED = re.compile(r"^COPY (?:--chmod=\S+ )?(?P<from>--from=\S+ )?(?P<source>\S+) ", re.MULTILINE)


def dockerfile(name: str) -> str:
    return (repo_root() / IMAGES[name].folder / "Dockerfile").read_text()


@pytest.fixture
def no_builds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model = tmp_path / specs.MODEL
    model.mkdir()
    (model / "config.json").write_text("{}")
    program = tmp_path / "program"
    program.write_text("")
    monkeypatch.setattr(specs, "model_dir", lambda: model)
    monkeypatch.setattr(specs, "ensure", lambda names: dict.fromkeys(names, program))


@pytest.mark.usefixtures("no_builds")
@pytest.mark.parametrize("name", IMAGES)
def test_the_inputs_hold_all_that_the_dockerfile_copies(name: str) -> None:
    spec = IMAGES[name]
    files = spec.inputs(repo_root()).contexts
    text = dockerfile(name)
    stages = set(re.findall(r" AS (\S+)", text))

    for match in COPIED.finditer(text):
        origin = (match["from"] or "").strip().removeprefix("--from=")
        if origin in stages:
            continue
        source = match["source"].replace("${VARIANT}", spec.build_args.get("VARIANT", "cpu")).rstrip("/")
        assert any(file == source or file.startswith(f"{source}/") for file in files[origin]), source


@pytest.mark.usefixtures("no_builds")
@pytest.mark.parametrize("name", [name for name, spec in IMAGES.items() if spec.heavy_stage])
def test_the_heavy_stage_exists_and_reads_none_of_the_light_files(name: str) -> None:
    before, _, after = dockerfile(name).partition(f"FROM {IMAGES[name].heavy_stage}\n")

    assert f" AS {IMAGES[name].heavy_stage}\n" in before
    assert after
    heavy_part = before.partition(" AS code\n")[0]
    assert "COPY src" not in heavy_part
    assert "COPY src" in before


@pytest.mark.parametrize("name", IMAGES)
def test_images_run_as_an_unprivileged_user(name: str) -> None:
    text = dockerfile(name)
    if "ENTRYPOINT" in text:
        assert re.search(r"^USER [1-9]\d{3,}:[1-9]\d{3,}$", text, re.MULTILINE)


def test_names_are_full_references() -> None:
    assert reference("worker") == "zerolayer.dev/worker:dev"


def test_gpu_variant_is_built_on_request_only() -> None:
    assert not IMAGES["worker-gpu"].by_default
    assert IMAGES["worker-gpu"].build_args == {"VARIANT": "gpu"}
    assert (repo_root() / "worker/requirements-torch-gpu.lock").exists()

import pytest

from zerolayer_dev.demo.stages import Stages


def test_stages_are_announced_timed_and_summed_up(capsys: pytest.CaptureFixture[str]) -> None:
    stages = Stages()
    with stages.stage("first"):
        pass
    with pytest.raises(ValueError, match="broken"), stages.stage("second"):
        raise ValueError("broken")

    assert "==> first" in capsys.readouterr().out
    assert stages.current == "second"
    assert [line.split()[0] for line in stages.summary()] == ["stage", "first", "second", "total"]


def test_before_any_stage_it_is_the_start() -> None:
    assert Stages().current == "the start"

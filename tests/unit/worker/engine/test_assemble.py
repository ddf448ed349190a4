from dataclasses import replace

import pytest

from zerolayer_worker.common.intents import Intent
from zerolayer_worker.engine import assemble as module
from zerolayer_worker.engine.assemble import assemble
from zerolayer_worker.engine.config import EngineConfig
from zerolayer_worker.engine.selftest import SelfTestResult
from zerolayer_worker.engine.warmup import WarmupError


def test_a_failed_self_test_rules_the_deterministic_intent_out(
    tiny_config: EngineConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        module, "choose_row_multiple", lambda _runner, _rows: SelfTestResult(4, "rows differ")
    )
    engine = assemble(tiny_config, lambda _stage: None)
    engine.close()
    assert engine.unavailable_intents == {Intent.DETERMINISTIC: "rows differ"}


def test_a_warm_up_that_does_not_settle_ends_the_start(tiny_config: EngineConfig) -> None:
    """No rate of change satisfies a ratio of nothing."""
    with pytest.raises(WarmupError, match="did not settle"):
        assemble(replace(tiny_config, warmup_settle_ratio=0.0, warmup_timeout_s=0.5), lambda _stage: None)

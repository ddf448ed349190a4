from pathlib import Path

from zerolayer_dev.cluster.plan import Component, Mount, Plan, Probe


def test_a_plan_survives_being_written(tmp_path: Path) -> None:
    plan = Plan(
        hostname="x",
        address="198.18.4.2/30",
        services="198.18.0.0/22",
        path="/bin",
        logs="/logs",
        control="/control.sock",
        components=(
            Component("one", ("/bin/one", "--flag"), Probe("https", "https://x", "/ca"), ("two",)),
            Component("two", ("/bin/two",)),
        ),
        mounts=(Mount("/run"), Mount("/var/lib", "/state/lib")),
        lifeline=7,
    )
    plan.write(tmp_path / "plan.json")
    assert Plan.read(tmp_path / "plan.json") == plan

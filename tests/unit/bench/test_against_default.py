"""The operator's own policy against a fixed window of 300 s, as a table."""

from zerolayer_bench.autoscaling.against_default import Cost, of_file, of_rows, table
from zerolayer_bench.autoscaling.experiment import Row
from zerolayer_bench.autoscaling.frontier import Distance
from zerolayer_bench.autoscaling.report import write_page, write_tables
from zerolayer_bench.autoscaling.simulation import Outcome
from zerolayer_dev.paths import repo_root


def row(policy: str, hours: float, late: float, regrets: int) -> Row:
    none = Distance(0.0, outside=False)
    return Row("t", 3600, 90, policy, Outcome(hours, 0.02, late, 1.0, regrets), none, none)


ROWS = [row("fixed-0s", 5.0, 0.5, 9), row("fixed-300s", 10.0, 0.0123, 1), row("ours", 9.5, 0.02, 4)]
LINE = "| t | 90 s | -5.0 % | 2.00 % | 1.23 % | 4 | 1 |"


def test_a_line_for_each_trace_and_cold_start() -> None:
    costs = list(of_rows(ROWS))
    longer = [cost._replace(cold_start_s=240, replica_hours=10.0) for cost in costs]

    assert list(table([*costs, *longer]))[2:] == [LINE, "| t | 240 s | +0.0 % | 2.00 % | 1.23 % | 4 | 1 |"]


def test_a_file_says_the_same_as_the_rows_it_was_written_from(tmp_path) -> None:
    write_tables(ROWS, tmp_path)
    write_page(ROWS, tmp_path / "summary.md")

    assert list(of_file(tmp_path / "summary.csv")) == [
        Cost("t", 90, "fixed-0s", 5.0, 0.5, 9),
        Cost("t", 90, "fixed-300s", 10.0, 0.0123, 1),
        Cost("t", 90, "ours", 9.5, 0.02, 4),
    ]
    assert LINE in (tmp_path / "summary.md").read_text(encoding="utf-8").splitlines()


def test_the_documentation_has_the_table_of_the_recorded_figures() -> None:
    docs = repo_root() / "docs"
    page = (docs / "autoscaling-benchmark.md").read_text(encoding="utf-8")

    assert "\n".join(table(of_file(docs / "frontier" / "summary.csv"))) in page

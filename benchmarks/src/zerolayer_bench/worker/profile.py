"""Our own time by operation."""

from collections.abc import Callable

_ROWS = 25


def profiled(work: Callable[[], object]) -> str:
    """Runs `work` under torch's profiler, all threads of the process, and returns its table."""
    # Only this needs torch. The engine computes in a thread of its own, which the profiler skips by default.
    from torch._C._profiler import _ExperimentalConfig as Config  # noqa: PLC0415
    from torch.profiler import ProfilerActivity, profile  # noqa: PLC0415

    with profile(
        activities=[ProfilerActivity.CPU], experimental_config=Config(profile_all_threads=True)
    ) as seen:
        work()
    return str(
        seen.key_averages().table(sort_by="self_cpu_time_total", row_limit=_ROWS, max_name_column_width=48)
    )

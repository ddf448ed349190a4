"""Both formats of recorded arrivals, and what is no trace."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from zerolayer_bench.autoscaling.traces import (
    DECODE_TOKENS_PER_S,
    PREFILL_TOKENS_PER_S,
    TraceError,
    Workload,
    offered_load,
    read,
)


def trace(folder: Path, text: str) -> Path:
    path = folder / "some.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    return path


def test_requests_with_their_lengths(tmp_path) -> None:
    lines = "arrival_s,input_tokens,output_tokens\n7.5,4000,30\n3.5,8000,60\n80,0,15\n"
    workload = read(trace(tmp_path, lines))

    assert workload.name == "some"
    assert workload.arrivals.tolist() == [0.0, 4.0, 76.5]
    assert workload.services.tolist() == pytest.approx(
        [8000 / PREFILL_TOKENS_PER_S + 60 / DECODE_TOKENS_PER_S, 2.0, 0.5]
    )
    assert workload.duration_s == 120


def test_counts_of_five_seconds(tmp_path) -> None:
    path = trace(tmp_path, "requests_per_5s\n3\n0\n2\n")
    workload = read(path)

    assert [int(second // 5) for second in workload.arrivals] == [0, 0, 0, 2, 2]
    assert (workload.services > 0).all()
    assert workload.duration_s == 60
    assert read(path).services.tolist() == workload.services.tolist()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("when,what\n1,2\n", "line 1"),
        ("requests_per_5s\nmany\n", "some.csv.gz.*1 numbers"),
        ("requests_per_5s\n0\n0\n", "no request"),
        ("requests_per_5s\n", "no request"),
        ("requests_per_5s\n1,2\n3\n", "1 numbers"),
        ("requests_per_5s\n-1\n3\n", "negative"),
        ("requests_per_5s\nnan\n3\n", "finite"),
        ("arrival_s,input_tokens,output_tokens\n1,2\n", "3 numbers"),
        ("arrival_s,input_tokens,output_tokens\n1,inf,3\n", "finite"),
        ("arrival_s,input_tokens,output_tokens\n1,-2,3\n", "negative"),
        ("", "line 1"),
        ("requests_per_5s\n1.5\n", "whole number"),
        ("arrival_s,input_tokens\n1,2\n", "line 1"),
        ("arrival_s,input_tokens,output_tokens\n1,0,0\n", "no request has tokens"),
        ("arrival_s,input_tokens,output_tokens\n0,1,1\n1e9,1,1\n", "days are more than"),
    ],
)
def test_what_is_no_trace_is_named(tmp_path, text, complaint) -> None:
    with pytest.raises(TraceError, match=complaint):
        read(trace(tmp_path, text))


def test_a_file_that_is_not_compressed_is_named(tmp_path) -> None:
    path = tmp_path / "plain.csv.gz"
    path.write_text("requests_per_5s\n1\n")

    with pytest.raises(TraceError, match="plain"):
        read(path)


def test_a_file_that_is_damaged_is_named(tmp_path) -> None:
    whole = gzip.compress(b"requests_per_5s\n" + b"1\n2\n3\n" * 2000)
    for name, content in (("cut", whole[:-20]), ("damaged", whole[:30] + b"\xff" * 8 + whole[38:])):
        path = tmp_path / f"{name}.csv.gz"
        path.write_bytes(content)
        with pytest.raises(TraceError, match=name):
            read(path)


def test_line_ends_and_marks_of_other_systems_are_no_matter(tmp_path) -> None:
    plain = trace(tmp_path, "arrival_s,input_tokens,output_tokens\n0,4,4\n60,4,4\n")
    other = tmp_path / "other.csv.gz"
    other.write_bytes(
        gzip.compress(b"\xef\xbb\xbf" + gzip.decompress(plain.read_bytes()).replace(b"\n", b"\r\n"))
    )

    assert read(other).services.tolist() == read(plain).services.tolist()
    # Who comes at 60 s is still within the trace.
    assert read(plain).duration_s == 120


def test_offered_load_is_what_would_be_busy_without_a_queue() -> None:
    workload = Workload("w", np.array([0.0, 0.5, 3.0]), np.array([2.0, 1.0, 10.0]), 6)

    assert offered_load(workload).tolist() == [1, 2, 0, 1, 1, 1]

"""What is not a rate: memory, start, clients that leave, and a long run."""

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tests.bench.measure import Bench, measure, paced, plain, say
from tests.bench.targets import Gateway, Target
from tests.bench.tools import Work, running_load

HOLD = Work("hold", "m-c40-i15000", ramp=500.0)
HELD_STREAMS = (500, 2000)
LEAVING_STREAMS = 40
STARTS = 5
SOAK_PERIOD = 10.0
KIB = 1024.0

Launch = Callable[[], AbstractContextManager[Target]]


def measure_memory(bench: Bench, launches: Sequence[Launch]) -> list[dict[str, Any]]:
    """Return a row per target: resident MiB idle and at its most under load, KiB per held stream."""
    rows = []
    for launch in launches:
        with launch() as target:
            target.session.settle()
            row: dict[str, Any] = {"target": target.name, "idle_mib": target.session.memory().resident / KIB}
            for case in (plain(64), paced(64)):
                measure(bench, target, case.work)
            loaded = target.session.memory()
        row |= {"peak_mib": loaded.peak / KIB, "after_mib": loaded.resident / KIB, "held": []}
        for streams in HELD_STREAMS:
            with launch() as target:
                row["held"].append(hold(bench, target, streams))
        say(f"memory  {row}")
        rows.append(row)
    return rows


def hold(bench: Bench, target: Target, streams: int) -> dict[str, Any]:
    """Hold streams over a fresh process and return what each of them takes, in KiB."""
    first = Work(
        "plain", "m-fast", 16, seconds=0.3, warm_up=0.0
    )  # what is made at the first request is no stream's
    with running_load(bench.tools.load, first, target.port, target.path, target.key) as load:
        load.result()
    target.session.settle()
    before = target.session.memory().resident
    work = Work(HOLD.mode, HOLD.model, streams, ramp=HOLD.ramp)
    with running_load(bench.tools.load, work, target.port, target.path, target.key) as load:
        held = load.wait_held()
        target.session.settle()
        during = target.session.memory().resident
        result = load.result()
    row = {"streams": streams, "held": held, "kib_each": (during - before) / held if held else None}
    return row | {name: result[name] for name in ("errors", "faults", "first_ms", "sample")}


def measure_start(gateway: Gateway) -> dict[str, Any]:
    """Return the seconds from exec to READY on a database that exists: each, and their median."""
    seconds = []
    for _ in range(STARTS):
        with gateway.running() as (_, spent):
            seconds.append(spent)
    say(f"start  {gateway.name} {' '.join(f'{one:.2f}' for one in seconds)} s")
    return {"target": gateway.name, "seconds": seconds, "median": statistics.median(seconds)}


def measure_leave(bench: Bench, target: Target) -> dict[str, Any]:
    """Let clients leave while the provider is silent; count the provider's answers that are still going."""
    before = bench.mock.answers()
    work = Work("hold", HOLD.model, LEAVING_STREAMS, ramp=HOLD.ramp)
    with running_load(bench.tools.load, work, target.port, target.path, target.key) as load:
        held = load.wait_held()
        streaming = bench.mock.answers()
        result = load.result()
    left = time.monotonic()
    freed = None
    while time.monotonic() < left + 1.0:
        if freed is None and bench.mock.answers() <= before:
            freed = time.monotonic() - left
        time.sleep(0.02)
    row = {"target": target.name, "held": held, "before": before, "streaming": streaming}
    row |= {"after_1s": bench.mock.answers(), "freed_seconds": freed, "errors": result["errors"]}
    say(f"leave  {row}")
    return row


def soak(bench: Bench, target: Target, streams: int, minutes: float) -> dict[str, Any]:
    """Run streams for a long time; return the result with resident memory by time, [seconds, MiB]."""
    work = Work("stream", "m-c100-i20", streams, seconds=minutes * 60, warm_up=1.0, chunks=100, ramp=500.0)
    series: list[tuple[float, float]] = []
    with running_load(bench.tools.load, work, target.port, target.path, target.key) as load:
        began = due = time.monotonic()
        while load.process.poll() is None:
            if time.monotonic() >= due:
                series.append((time.monotonic() - began, target.session.memory().resident / KIB))
                say(f"soak  {series[-1][0]:6.0f} s  {series[-1][1]:8.1f} MiB")
                due += SOAK_PERIOD
            time.sleep(0.2)
        result = load.result()
    return {**result, "target": target.name, "streams": streams, "minutes": minutes, "memory": series} | {
        "growth": growth_by_thirds(series)
    }


def growth_by_thirds(series: Sequence[tuple[float, float]]) -> list[float | None]:
    """Return the growth in MiB a minute within each third of a series of (seconds, MiB)."""
    size = len(series) // 3
    parts = (series[:size], series[size : len(series) - size], series[len(series) - size :])
    return [_slope(part) * 60 if len(part) > 1 else None for part in parts]


def _slope(points: Sequence[tuple[float, float]]) -> float:
    seconds, sizes = zip(*points, strict=True)
    return statistics.linear_regression(seconds, sizes).slope

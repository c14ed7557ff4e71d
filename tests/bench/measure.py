"""Side by side: the same work for every target, in alternation, with what it cost in processor time."""

import resource
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.bench.processes import busy_seconds, cpu_seconds_of
from tests.bench.targets import Mock, RequestCounts, Target
from tests.bench.tools import Load, Tools, Work, running_load

Sample = dict[str, Any]
Runs = dict[str, dict[str, list[Sample]]]  # case -> target -> a sample per round


@dataclass(frozen=True)
class Case:
    """A kind of work; `unit` is what processor time is counted by, `path` one other than of chats."""

    name: str
    title: str
    work: Work
    path: str | None = None

    @property
    def unit(self) -> str:
        """Return "chunk" or "request"."""
        return "chunk" if self.work.mode == "stream" else "request"


@dataclass(frozen=True)
class Bench:
    """What every measurement needs."""

    tools: Tools
    mock: Mock

    @property
    def direct(self) -> Target:
        """Return the provider itself as a target."""
        return Target("direct", self.mock.port, "/v1/chat/completions", self.mock.session)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def plain(connections: int) -> Case:
    """Return whole answers over so many connections."""
    title = f"whole answers, {counted(connections, 'connection')}"
    return Case(f"plain_{connections}", title, Work("plain", "m-fast", connections))


def paced(connections: int) -> Case:
    """Return streams with a chunk each 10 ms (5 ms for a single one)."""
    if connections == 1:
        return Case("paced_1", "1 paced stream", Work("stream", "m-c10-i5", chunks=10))
    work = Work("stream", "m-c50-i10", connections, warm_up=1.0, chunks=50)
    return Case(f"paced_{connections}", f"{connections} paced streams", work)


UNPACED = Case("unpaced_16", "16 unpaced streams", Work("stream", "m-c100-i0", 16, chunks=100))
MANY = Case(
    "many_1000",
    "1000 streams at once, each with its own content",
    Work("stream", "m-c50-i100", 1000, seconds=10.0, warm_up=2.0, chunks=50, ramp=1000.0),
)
MODELS = Case("models_16", "GET of the models", Work("get", "m-fast", 16), "/v1/models")
HEALTH = Case("health_16", "GET of the health", Work("get", "m-fast", 16), "/health")
QUICK = (plain(1), plain(64), paced(64), UNPACED)
ROUTER = (plain(64), paced(64), paced(256), UNPACED, plain(1), MODELS, HEALTH)
GROWTH = (plain(64), paced(64), MODELS)
CORE = (*map(plain, (1, 16, 64, 256)), *map(paced, (1, 16, 64, 256)), UNPACED)


def say(text: str) -> None:
    """Tell a person how far it is."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def show(text: str) -> None:
    """Print a part of the result."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def alternate(
    bench: Bench, cases: Sequence[Case], targets: Sequence[Target], rounds: int, seconds: float
) -> Runs:
    """Measure each case for each target in turn, the order reversed every other round."""
    runs: Runs = {case.name: {target.name: [] for target in targets} for case in cases}
    for number in range(rounds):
        for case in cases:
            work = replace(case.work, seconds=max(seconds, case.work.seconds if case is MANY else 0))
            for target in targets if number % 2 == 0 else reversed(targets):
                sample = measure(bench, target, work, case.path)
                runs[case.name][target.name].append(sample)
                say(_progress(number, case, target, sample))
    return runs


def measure(bench: Bench, target: Target, work: Work, path: str | None = None) -> Sample:
    """Do the work once; return the load generator's result with processor time and memory of the target.

    Processor time is that of the window in which samples are taken. `fast_share` is the share of all requests
    in that window that a gateway answered on its fast path, None for a target that does not tell.
    """
    with running_load(bench.tools.load, work, target.port, path or target.path, target.key) as load:
        load.wait_window()
        counted_before = target.counts()
        began, before = time.monotonic(), _costs(bench, target, load)
        load.wait_window()
        wall, after = time.monotonic() - began, _costs(bench, target, load)
        counted_after = target.counts()
        sample = load.result()
    spent = {name: value - before[name] for name, value in after.items()}
    units = sample["chunks"] if work.mode == "stream" else sample["ok"]
    sample["cpu_us"] = spent["target"] / units * 1e6 if units else None
    sample["cpu_share"] = spent["target"] / wall
    ours = sum(value for name, value in spent.items() if name != "machine")
    sample["other_cpu"] = max(0.0, spent["machine"] - ours) / wall
    sample["peak_kib"] = target.session.memory().peak
    sample["fast_share"] = _fast_share(counted_before, counted_after)
    target.session.settle()
    return sample


def _fast_share(before: RequestCounts | None, after: RequestCounts | None) -> float | None:
    if before is None or after is None or after.requests == before.requests:
        return None
    return (after.fast - before.fast) / (after.requests - before.requests)


def _costs(bench: Bench, target: Target, load: Load) -> Mapping[str, float]:
    """Return the processor seconds so far, by who spent them."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    is_direct = target.session is bench.mock.session
    return {
        "machine": busy_seconds(),
        "target": target.session.cpu_seconds(),
        "mock": 0.0 if is_direct else bench.mock.session.cpu_seconds(),
        "load": cpu_seconds_of(load.process.pid),
        "own": own.ru_utime + own.ru_stime,
    }


def _progress(number: int, case: Case, target: Target, sample: Sample) -> str:
    rate = sample[f"{case.unit}s_per_second"]
    cost = f"{sample['cpu_us']:.1f}" if sample["cpu_us"] is not None else "-"
    line = (
        f"round {number + 1}  {case.name:11} {target.name:10} {rate:10,.0f} {case.unit}s/s  {cost:>7} us each"
    )
    line += f"  other cpu {sample['other_cpu']:.2f}"
    if sample["fast_share"] is not None:
        line += f"  fast {sample['fast_share']:.1%}"
    if sample["errors"]:
        faults = {name: count for name, count in sample["faults"].items() if count}
        line += f"  ERRORS {faults} {sample['sample'][:200]}"
    return line

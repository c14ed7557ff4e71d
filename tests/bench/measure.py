"""Side by side: the same work for every target, in alternation, with what it cost in processor time."""

import resource
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.bench.processes import busy_seconds
from tests.bench.targets import Mock, Target
from tests.bench.tools import Tools, Work, running_load

Sample = dict[str, Any]
Runs = dict[str, dict[str, list[Sample]]]  # case -> target -> a sample per round


@dataclass(frozen=True)
class Case:
    """A kind of work; `unit` is what processor time is counted by."""

    name: str
    title: str
    work: Work

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
QUICK = (plain(1), plain(64), paced(64), UNPACED)
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
                sample = measure(bench, target, work)
                runs[case.name][target.name].append(sample)
                say(_progress(number, case, target, sample))
    return runs


def measure(bench: Bench, target: Target, work: Work) -> Sample:
    """Do the work once; return the load generator's result with processor time and memory of the target."""
    began, before = time.monotonic(), _costs(bench, target)
    with running_load(bench.tools.load, work, target.port, target.path, target.key) as load:
        sample = load.result()
    wall = time.monotonic() - began
    spent = {name: value - before[name] for name, value in _costs(bench, target).items()}
    units = sample["all_chunks"] if work.mode == "stream" else sample["all_ok"]
    sample["cpu_us"] = spent["target"] / units * 1e6 if units else None
    sample["cpu_share"] = spent["target"] / wall
    ours = sum(value for name, value in spent.items() if name != "machine")
    sample["other_cpu"] = max(0.0, spent["machine"] - ours) / wall
    sample["peak_kib"] = target.session.memory().peak
    target.session.settle()
    return sample


def _costs(bench: Bench, target: Target) -> Mapping[str, float]:
    """Return the processor seconds so far, by who spent them; our children are load generators."""
    children, own = (resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF))
    is_direct = target.session is bench.mock.session
    return {
        "machine": busy_seconds(),
        "target": target.session.cpu_seconds(),
        "mock": 0.0 if is_direct else bench.mock.session.cpu_seconds(),
        "load": children.ru_utime + children.ru_stime,
        "own": own.ru_utime + own.ru_stime,
    }


def _progress(number: int, case: Case, target: Target, sample: Sample) -> str:
    rate = sample[f"{case.unit}s_per_second"]
    cost = f"{sample['cpu_us']:.1f}" if sample["cpu_us"] is not None else "-"
    line = (
        f"round {number + 1}  {case.name:11} {target.name:10} {rate:10,.0f} {case.unit}s/s  {cost:>7} us each"
    )
    line += f"  other cpu {sample['other_cpu']:.2f}"
    if sample["errors"]:
        faults = {name: count for name, count in sample["faults"].items() if count}
        line += f"  ERRORS {faults} {sample['sample'][:200]}"
    return line

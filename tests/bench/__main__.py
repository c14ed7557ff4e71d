"""Benchmarks: `python -m tests.bench` from the root of the repository.

Chat completions from a mock provider are asked for directly, through nginx and through gatewayd of this
checkout, in alternation. It compiles its own tools; needs Linux, a C compiler and nginx. Everything that it
starts listens on free ports of loopback, keeps its files in a temporary folder, and is gone at the end.

  quick    requests/s, chunks/s, added latency, CPU per request and chunk at a few numbers of connections
  core     the same at 1, 16, 64 and 256 connections
  memory   resident memory idle, under load, and per held stream
  leave    is the provider freed when clients leave while it is silent?
  start    time from exec to READY on an existing database
  many     1000 streams at once; every chunk is checked
  soak     --streams streams for --minutes minutes: memory and errors
  all      core, memory, leave, start and many

`python -m tests.bench documents --help` tells of the benchmarks of documents.
"""

import argparse
import contextlib
import json
import os
import platform
import resource
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench import documents, report, suites
from tests.bench.goals import goals_table
from tests.bench.measure import CORE, MANY, QUICK, Bench, Case, alternate, say, show
from tests.bench.targets import (
    Gateway,
    Target,
    check,
    checked_out,
    prepared_gateway,
    running_mock,
    running_nginx,
)
from tests.bench.tools import CannotRunError, build, require

ROOT = Path(__file__).parents[2]
ALL = ("core", "memory", "leave", "start", "many")
SUITES = ("quick", *ALL, "soak", "all")
LEAST_FILES = 5000


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        "python -m tests.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--suite", nargs="+", choices=SUITES, default=["quick"], help="what to measure (quick)"
    )
    parser.add_argument("--rounds", type=_positive(int), default=3, help="alternations (3)")
    parser.add_argument("--seconds", type=_positive(float), default=2.0, help="of each measurement (2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all results in a file")
    parser.add_argument("--against", metavar="REV", help="measure another commit in the same run")
    parser.add_argument(
        "--nice", type=int, default=0, help="priority of everything, such as -10 (needs root)"
    )
    parser.add_argument("--streams", type=_positive(int), default=200, help="of soak (200)")
    parser.add_argument("--minutes", type=_positive(float), default=30.0, help="of soak (30)")
    options = parser.parse_args(given)
    named = [one for suite in options.suite for one in (ALL if suite == "all" else (suite,))]
    options.suite = list(dict.fromkeys(named))
    return options


def _positive(kind: type[int] | type[float]) -> Any:
    def read(text: str) -> float:
        value = kind(text)
        if not 0 < value < float("inf"):
            raise ValueError
        return value

    read.__name__ = f"positive {kind.__name__}"
    return read


class Run:
    """One run: the servers that are measured, the results, and the tables as they come."""

    def __init__(self, options: argparse.Namespace, folder: Path, stack: ExitStack) -> None:
        self.options = options
        self.folder = folder
        tools = build(folder)
        self.bench = Bench(tools, stack.enter_context(running_mock(tools, folder)))
        self.gateways = list(self._gateways())
        self.results: dict[str, Any] = {
            "machine": {
                "cores": os.cpu_count(),
                "kernel": platform.release(),
                "python": platform.python_version(),
            },
            "options": {"rounds": options.rounds, "seconds": options.seconds, "nice": options.nice},
        }

    def _gateways(self) -> Iterator[Gateway]:
        yield prepared_gateway("gatewayd", ROOT, self.bench.mock, self.folder / "s")
        if revision := self.options.against:
            root = checked_out(ROOT, revision, self.folder / "tree")
            yield prepared_gateway(revision.replace("|", " "), root, self.bench.mock, self.folder / "t")

    @contextlib.contextmanager
    def _nginx(self) -> Iterator[Target]:
        with running_nginx(self.bench.mock, self.folder / "nginx") as target:
            check(self.bench.tools, target)
            yield target

    @contextlib.contextmanager
    def _gateway(self, gateway: Gateway) -> Iterator[Target]:
        with gateway.running() as (target, _):
            check(self.bench.tools, target)
            yield target

    @contextlib.contextmanager
    def _idle_gateway(self, gateway: Gateway) -> Iterator[Target]:
        with gateway.running() as (target, _):
            yield target

    @contextlib.contextmanager
    def _targets(self) -> Iterator[list[Target]]:
        with ExitStack() as stack:
            proxies = [stack.enter_context(self._nginx())]
            proxies += [stack.enter_context(self._gateway(gateway)) for gateway in self.gateways]
            yield [self.bench.direct, *proxies]

    def rates(self, cases: Sequence[Case], rounds: int) -> None:
        """Measure cases and print their tables."""
        with self._targets() as targets:
            runs = alternate(self.bench, cases, targets, rounds, self.options.seconds)
        self.results.setdefault("runs", {}).update(runs)
        for case in cases:
            show(report.case_table(case, runs[case.name]))

    def quick(self) -> None:
        self.rates(QUICK, self.options.rounds)

    def core(self) -> None:
        self.rates(CORE, self.options.rounds)

    def many(self) -> None:
        self.rates((MANY,), 1)

    def memory(self) -> None:
        launches: list[suites.Launch] = [
            self._nginx,
            *(partial(self._idle_gateway, gateway) for gateway in self.gateways),
        ]
        rows = suites.measure_memory(self.bench, launches)
        self._keep("memory", rows, report.memory_table)

    def start(self) -> None:
        self._keep("start", list(map(suites.measure_start, self.gateways)), report.start_table)

    def leave(self) -> None:
        with self._targets() as targets:
            rows = [suites.measure_leave(self.bench, target) for target in targets[1:]]
        self._keep("leave", rows, report.leave_table)

    def soak(self) -> None:
        rows = []
        for gateway in self.gateways:
            with self._gateway(gateway) as target:
                rows.append(suites.soak(self.bench, target, self.options.streams, self.options.minutes))
        self._keep("soak", rows, report.soak_table)

    def _keep(self, suite: str, rows: list[dict[str, Any]], table: Any) -> None:
        self.results[suite] = rows
        show(table(rows))


def prepare(options: argparse.Namespace) -> None:
    """Check what can be checked at once, and set limits and priority."""
    require("cc", "nginx")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if most != resource.RLIM_INFINITY and most < LEAST_FILES:
        raise CannotRunError(
            f"cannot run the benchmark: only {most} open files are allowed, {LEAST_FILES} are needed"
        )
    files = most if most != resource.RLIM_INFINITY else 65536
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(files, 65536), most))
    if options.json is not None:
        check_writable(options.json)
    try:
        os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) + options.nice)
    except PermissionError as error:
        raise CannotRunError(f"cannot run with --nice {options.nice}: that needs root") from error


def check_writable(path: Path) -> None:
    """Refuse a file that could not be written after all the measuring."""
    try:
        path.touch()
    except OSError as error:
        raise CannotRunError(f"cannot write {path}: {error.strerror}") from error


def run(options: argparse.Namespace) -> None:
    """Measure, print and keep."""
    prepare(options)
    with tempfile.TemporaryDirectory(prefix="bench-") as name, ExitStack() as stack:
        run = Run(options, Path(name), stack)
        try:
            for suite in options.suite:
                say(f"== {suite}")
                getattr(run, suite)()
            show(f"### Goals\n\n{goals_table(run.results)}")
        finally:
            if options.json is not None:
                options.json.write_text(json.dumps(run.results, indent=1) + "\n")


def main() -> int:
    """Run and return the exit status: 2 when it cannot run, 130 when it was interrupted."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        if sys.argv[1:2] == ["documents"]:
            documents.main(sys.argv[2:])
        else:
            run(arguments())
    except CannotRunError as error:
        say(str(error))
        return 2
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

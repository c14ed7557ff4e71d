"""Benchmarks: `python -m tests.bench` from the root of the repository.

Chat completions from a mock provider are asked for directly, through nginx and through gatewayd of this
checkout, in alternation. It compiles its own tools; needs Linux, a C compiler and nginx. Everything that it
starts listens on free ports of loopback, keeps its files in a temporary folder, and is gone at the end.

  quick    requests/s, chunks/s, added latency, CPU per request and chunk at a few numbers of connections
  core     the same at 1, 16, 64 and 256 connections
  router   CPU in ratio to vllm-router (--router PROGRAM), with proxies that check nothing as floors; fails if
           less than 95 % of the requests of a row take the fast path
  growth   the same with 100,000 users, keys, chats and grants, a million messages, 2,000 models of a
           workspace and 400 unused plugins
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
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench import documents, report, suites
from tests.bench.floors import STARTS
from tests.bench.goals import GROWN, UNMETERED, goals_table
from tests.bench.growth import Growth, grow
from tests.bench.measure import CORE, GROWTH, MANY, QUICK, ROUTER, Bench, Case, alternate, say, show
from tests.bench.targets import (
    ROUTER_NAME,
    Gateway,
    Target,
    check,
    checked_out,
    prepared_gateway,
    running_floor,
    running_mock,
    running_nginx,
    running_router,
)
from tests.bench.tools import CannotRunError, build, require

ROOT = Path(__file__).parents[2]
ALL = ("core", "memory", "leave", "start", "many")
SUITES = ("quick", *ALL, "router", "growth", "soak", "all")
LEAST_FAST_SHARE = 0.95
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
    parser.add_argument(
        "--router", type=Path, metavar="PROGRAM", help="vllm-router, of an environment of its own"
    )
    parser.add_argument(
        "--compare", type=Path, metavar="FILE", help="compare with the --json of an earlier run"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all results in a file")
    parser.add_argument("--against", metavar="REV", help="measure another commit in the same run")
    parser.add_argument(
        "--unmetered", action="store_true", help="measure it without metrics, usage and limits too"
    )
    parser.add_argument(
        "--nice", type=int, default=0, help="priority of everything, such as -10 (needs root)"
    )
    parser.add_argument("--streams", type=_positive(int), default=200, help="of soak (200)")
    parser.add_argument("--minutes", type=_positive(float), default=30.0, help="of soak (30)")
    options = parser.parse_args(given)
    named = [one for suite in options.suite for one in (ALL if suite == "all" else (suite,))]
    options.suite = list(dict.fromkeys(named))
    if "router" in options.suite and options.router is None:
        parser.error("--suite router needs --router PROGRAM, from pip install vllm-router")
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
        self.earlier = read_results(options.compare)
        self.results: dict[str, Any] = {
            "machine": {
                "cores": os.cpu_count(),
                "kernel": platform.release(),
                "python": platform.python_version(),
                "has_profile_guided_python": has_profile_guided_python(),
            },
            "options": {"rounds": options.rounds, "seconds": options.seconds, "nice": options.nice},
        }

    def _gateways(self) -> Iterator[Gateway]:
        yield prepared_gateway("gatewayd", ROOT, self.bench.mock, self.folder / "s")
        if self.options.unmetered:
            state = self.folder / "u"
            yield prepared_gateway(UNMETERED, ROOT, self.bench.mock, state, "tests.bench.unmetered")
        if revision := self.options.against:
            root = checked_out(ROOT, revision, self.folder / "tree")
            yield prepared_gateway(revision.replace("|", " "), root, self.bench.mock, self.folder / "t")

    @contextlib.contextmanager
    def _grown(self) -> Iterator[Target]:
        state = self.folder / "g"
        gateway = prepared_gateway(GROWN, ROOT, self.bench.mock, state)
        grow(state, Growth())
        with self._gateway(gateway) as target:
            yield target

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

    def router(self) -> None:
        with ExitStack() as stack:
            mock = self.bench.mock
            floors = [stack.enter_context(running_floor(name, mock, self.folder)) for name in STARTS]
            router = running_router(self.options.router, mock, self.folder / "router")
            with self._targets() as targets:
                targets += [*floors, stack.enter_context(router)]
                runs = alternate(self.bench, ROUTER, targets, self.options.rounds, self.options.seconds)
        self.results.setdefault("runs", {}).update(runs)
        for case in ROUTER:
            earlier = self.earlier.get("runs", {}).get(case.name, {})
            show(report.router_table(case, runs[case.name], earlier))

    def growth(self) -> None:
        with self._targets() as targets, self._grown() as grown:
            runs = alternate(
                self.bench,
                GROWTH,
                [targets[0], *targets[2:], grown],
                self.options.rounds,
                self.options.seconds,
            )
        self.results["growth"] = runs
        for case in GROWTH:
            show(report.case_table(case, runs[case.name]))

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


def has_profile_guided_python() -> bool:
    """Return whether this Python was compiled with profile-guided optimisation."""
    return "--enable-optimizations" in str(sysconfig.get_config_var("CONFIG_ARGS"))


def read_results(path: Path | None) -> dict[str, Any]:
    """Return the results of an earlier run; nothing without a file."""
    if path is None:
        return {}
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise CannotRunError(f"cannot read {path}: {error}") from error
    return found


def slow_rows(results: Mapping[str, Any]) -> list[str]:
    """Return the rows compared with vllm-router in which the general way answered too many requests."""
    rows = []
    for name, runs in results.get("runs", {}).items():
        shares = [sample.get("fast_share") for sample in runs.get("gatewayd", ())]
        if ROUTER_NAME in runs and any(share is not None and share < LEAST_FAST_SHARE for share in shares):
            rows.append(name)
    return rows


def check_writable(path: Path) -> None:
    """Refuse a file that could not be written after all the measuring."""
    try:
        path.touch()
    except OSError as error:
        raise CannotRunError(f"cannot write {path}: {error.strerror}") from error


def run(options: argparse.Namespace) -> int:
    """Measure, print and keep; return the exit status."""
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
        slow = slow_rows(run.results)
        if slow:
            say(f"less than {LEAST_FAST_SHARE:.0%} of the requests took the fast path: {', '.join(slow)}")
        return 1 if slow else 0


def main() -> int:
    """Run and return the exit status: 1 when the fast path was missed, 2 for no run, 130 when interrupted."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        if sys.argv[1:2] == ["documents"]:
            documents.main(sys.argv[2:])
        else:
            return run(arguments())
    except CannotRunError as error:
        say(str(error))
        return 2
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Documents: `python -m tests.bench documents [suite ...]` from the root of the repository.

  ingest   documents through the gateway, compared with the same work alone
  memory   of each process, while a PDF of 1,600 pages is ingested
  waiting  small files behind 73 large ones, until they are found
  load     /health and chats, idle and while documents are ingested (needs a C compiler)
  search   queries over 100,000 and 10,000 passages, and their recall
  start    time to READY with 100,000 passages, and of the first query
  many     queries in one of 500 collections, compared with the only one of a database
  quality  answers to real questions: by words and meaning together, and by each alone (fetches packages)

Everything by default. Texts are prose of Python's own documentation (but for those of quality), the embedding
model is the real one, times are those of a client on loopback.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from tests.bench.documents_ingest import DOCUMENTS, LONG_PAGES, PAGES, Rounds, measure_load, measure_memory
from tests.bench.documents_quality import measure_quality
from tests.bench.documents_questions import examination
from tests.bench.documents_report import goals_table
from tests.bench.documents_search import LARGE, MANY, MIDDLE, measure_many, measure_queries, measure_start
from tests.bench.documents_site import ENGINES, REAL_PASSAGES, SQLITE, Model, made_model, prepared
from tests.bench.documents_waiting import (
    LONG_PASSAGES,
    PASSAGES,
    PAUSE,
    QUEUED,
    SMALL,
    measure_waiting,
    write_large,
)
from tests.bench.measure import say, show
from tests.bench.targets import running_mock
from tests.bench.tools import CannotRunError, build
from tests.corpus.fetch import FetchError

SUITES: Final = ("ingest", "memory", "waiting", "load", "search", "start", "many", "quality")


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        "python -m tests.bench documents",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("suite", nargs="*", help="what to measure (everything)")
    parser.add_argument("--database", nargs="+", choices=ENGINES, default=ENGINES)
    parser.add_argument("--rounds", type=int, default=3, help="alternations (3)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement of load (10)")
    parser.add_argument("--questions", type=int, default=300, help="of each kind of search (300)")
    parser.add_argument("--scale", type=float, default=1.0, help="a part of the usual sizes, such as 0.1")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all results in a file")
    parser.add_argument(
        "--nice", type=int, default=0, help="priority of everything, such as -10 (needs root)"
    )
    options = parser.parse_args(given)
    unknown = set(options.suite).difference(SUITES)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    options.suite = options.suite or list(SUITES)
    return options


class Run:
    """One run: a folder, the model that is made once, and the results."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options = options
        self.folder = folder
        self.results: dict[str, Any] = {}

    @cached_property
    def model(self) -> Model:
        """The embedding model and vectors of real passages."""
        folder = self.folder / "model"
        folder.mkdir()
        return made_model(folder, self._scaled(REAL_PASSAGES))

    def _scaled(self, number: int) -> int:
        return max(1, int(number * self.options.scale))

    def measure(self) -> None:
        """Measure what was asked for, each suite with a table of its own."""
        for suite in self.options.suite:
            began = time.monotonic()
            say(f"== {suite}")
            getattr(self, suite)()
            say(f"== {suite}: {time.monotonic() - began:.0f} s")
            show(goals_table(self.results))

    def ingest(self) -> None:
        folder = self.folder / "ingest"
        with prepared(folder, self.model) as site, site.running() as running:
            rounds = Rounds(running, self.model, folder, self._scaled(DOCUMENTS), self._scaled(PAGES))
            self.results["ingest"] = rounds.measure(self.options.rounds)

    def memory(self) -> None:
        folder = self.folder / "memory"
        with prepared(folder, self.model) as site, site.running() as running:
            self.results["memory"] = measure_memory(running, folder, self._scaled(LONG_PAGES))

    def waiting(self) -> None:
        folder = self.folder / "waiting"
        sizes = [self._scaled(number) for number in (QUEUED, PASSAGES, LONG_PASSAGES)]
        with prepared(folder, self.model) as site, site.running() as running:
            large = write_large(folder / "large", *sizes)
            row = measure_waiting(running, folder, SMALL, PAUSE, large)
            self.results["waiting"] = [row]

    def load(self) -> None:
        folder, options = self.folder / "chats", self.options
        with ExitStack() as stack:
            tools = build(self.folder)
            mock = stack.enter_context(running_mock(tools, self.folder))
            site = stack.enter_context(prepared(folder, self.model, provider=mock.port))
            running = stack.enter_context(site.running())
            self.results["load"] = measure_load(running, tools, folder, options.rounds, options.seconds)

    def search(self) -> None:
        for engine in self.options.database:
            self._search(engine, with_start=engine == SQLITE and "start" in self.options.suite)

    def start(self) -> None:
        if "start" not in self.results:
            folder, sizes = self.folder / "start", [self._scaled(LARGE)]
            with prepared(folder, self.model, SQLITE, sizes) as site:
                self.results["start"] = measure_start(site)

    def _search(self, engine: str, *, with_start: bool) -> None:
        folder, sizes = self.folder / f"search-{engine}", [self._scaled(LARGE), self._scaled(MIDDLE)]
        with prepared(folder, self.model, engine, sizes) as site:
            with site.running() as running:
                rows = measure_queries(site, running, self.model, self.options.questions)
                self.results[f"search {engine}"] = rows
            if with_start:
                # The same database serves for both.
                self.results["start"] = measure_start(site)

    def many(self) -> None:
        count = self._scaled(MANY)
        for engine in self.options.database:
            folder = self.folder / f"many-{engine}"
            folder.mkdir()
            found = measure_many(folder, self.model, engine, count, self.options.questions)
            self.results[f"many {engine}"] = found

    def quality(self) -> None:
        folder = self.folder / "quality"
        try:
            asked = examination()
        except FetchError as error:
            raise CannotRunError(f"cannot fetch the documents of real questions: {error}") from error
        with prepared(folder, self.model) as site, site.running() as running:
            self.results["quality"] = measure_quality(running, folder / "documents", asked)


def main(given: Sequence[str] | None = None) -> None:
    """Measure, print the tables and keep the results."""
    options = arguments(given)
    os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) + options.nice)
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        run = Run(options, Path(name))
        try:
            run.measure()
        finally:
            if options.json is not None:
                options.json.write_text(json.dumps(run.results, indent=1) + "\n")

"""Ingesting: how fast documents become passages, what memory that takes, and whom it keeps waiting."""

import contextlib
import http.client
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.bench.documents_alone import Asked, running_alone
from tests.bench.documents_corpus import Writer
from tests.bench.documents_site import Model, Running
from tests.bench.measure import say
from tests.bench.processes import busy_seconds, command_of, cpu_seconds_of, reset_peak, sizes_of
from tests.bench.report import quantile
from tests.bench.tools import CannotRunError, Tools, Work, running_load

PAGES: Final = 20
DOCUMENTS: Final = 10
LONG_PAGES: Final = 1600
MIB: Final = 1024.0
EXTRACTION: Final = "gatewayd.extract.child"
EMBEDDING: Final = "gatewayd.vectors.worker"
HEALTH_PAUSE: Final = 0.02
SAMPLE_PAUSE: Final = 0.05
CHATS: Final = 24
CHAT_MODEL: Final = "m-c50-i10"

Sizes = dict[str, dict[str, float]]


def write_documents(folder: Path, count: int, pages: int, seed: int) -> list[Path]:
    """Write PDFs of prose, none of whose pages was in another."""
    folder.mkdir(parents=True)
    writer = Writer(seed)
    paths = [folder / f"document {number}.pdf" for number in range(count)]
    for path in paths:
        writer.pdf(path, pages)
    return paths


@dataclass
class Rounds:
    """Measures both ways in alternation; each round has documents of its own."""

    running: Running
    model: Model
    folder: Path
    documents: int
    pages: int

    def measure(self, rounds: int) -> list[dict[str, float]]:
        """Return the seconds, passages and busy cores of each round."""
        samples = []
        with running_alone(self.model.folder) as alone:
            # Everything is loaded before anything is measured.
            warm = write_documents(self.folder / "warm", len(os.sched_getaffinity(0)), 2, 999)
            alone.ingest(warm)
            through(self.running, warm)
            for number in range(rounds):
                folder = self.folder / f"round{number}"
                paths = write_documents(folder, self.documents, self.pages, 100 + number)
                samples.append(self._round(alone, paths, swapped=number % 2 == 1))
                say(f"ingest  {samples[-1]}")
        return samples

    def _round(self, alone: Asked, paths: Sequence[Path], *, swapped: bool) -> dict[str, float]:
        sample: dict[str, float] = {"pages": len(paths) * self.pages}
        busy, began = busy_seconds(), time.monotonic()
        for name in ("gateway", "alone") if swapped else ("alone", "gateway"):
            started = time.monotonic()
            if name == "alone":
                sample["passages"] = alone.ingest(paths)
            else:
                cpu = cpu_seconds_of(self.running.session.process.pid)
                through(self.running, paths)
                sample["daemon_cpu"] = cpu_seconds_of(self.running.session.process.pid) - cpu
            sample[name] = time.monotonic() - started
        sample["busy"] = (busy_seconds() - busy) / (time.monotonic() - began)
        return sample


def through(running: Running, paths: Sequence[Path]) -> None:
    """Send documents into a collection and wait until all of them can be found."""
    collection_id = running.client.create_collection()
    running.client.wait([running.client.upload(path, collection_id) for path in paths])


class Watch:
    """Samples the memory of the daemon's processes by what they are."""

    def __init__(self, running: Running) -> None:
        self._session = running.session
        self._daemon = running.session.process.pid

    def reset(self) -> None:
        """Forget what was the most so far."""
        for pid in self._session.pids():
            reset_peak(pid)

    def sizes(self) -> Sizes:
        """Return resident MiB now and at most, by kind of process; of several of a kind, the largest."""
        found: Sizes = {}
        for pid in self._session.pids():
            kind = self._kind(pid)
            memory = sizes_of(pid)
            if kind and memory.resident:
                known = found.setdefault(kind, {"resident": 0.0, "peak": 0.0})
                known["resident"] = max(known["resident"], memory.resident / MIB)
                known["peak"] = max(known["peak"], memory.peak / MIB)
        return found

    def _kind(self, pid: int) -> str:
        if pid == self._daemon:
            return "daemon"
        command = command_of(pid)
        if EXTRACTION in command:
            return "extraction"
        return "embedding" if EMBEDDING in command else ""


def measure_memory(running: Running, folder: Path, pages: int = LONG_PAGES) -> dict[str, Any]:
    """Ingest one long PDF and return what each process held before, and at most."""
    collection_id = running.client.create_collection()
    cores = len(os.sched_getaffinity(0))
    warm = write_documents(folder / "warm", cores, 2, 7)
    running.client.wait([running.client.upload(path, collection_id) for path in warm])
    running.session.settle()
    watch = Watch(running)
    watch.reset()
    before = watch.sizes()
    [path] = write_documents(folder / "long", 1, pages, 8)
    began = time.monotonic()
    file_id = running.client.upload(path, collection_id)
    most = dict(before)
    while running.client.status(file_id) != "completed":
        _add(watch.sizes(), most)
        time.sleep(SAMPLE_PAUSE)
    seconds = time.monotonic() - began
    after = watch.sizes()
    _add(after, most)
    row = {
        "pages": pages,
        "bytes": path.stat().st_size,
        "seconds": seconds,
        "before": {kind: found["resident"] for kind, found in before.items()},
        "most": {kind: found["peak"] for kind, found in most.items()},
        "after": {kind: found["resident"] for kind, found in after.items()},
    }
    say(f"memory  {row}")
    return row


def _add(sizes: Sizes, most: Sizes) -> None:
    for kind, found in sizes.items():
        most[kind] = max(most.get(kind, found), found, key=lambda one: one["peak"])


@contextlib.contextmanager
def _ingesting(running: Running, paths: Sequence[Path]) -> Iterator[None]:
    """Have documents ingested while the block runs; ends the run when they were done before it was."""
    ids = [running.client.upload(path) for path in paths]
    yield
    if running.client.status(ids[-1]) == "completed":
        raise CannotRunError("the documents were done too early: the figures are partly of an idle gateway")
    for file_id in ids:
        running.client.send("DELETE", f"/api/v1/files/{file_id}")


def measure_load(
    running: Running, tools: Tools, folder: Path, rounds: int, seconds: float
) -> list[dict[str, Any]]:
    """Return chats' time to first token and /health, idle and while documents are ingested, per round."""
    rows = []
    for number in range(rounds):
        running.session.settle()
        row = {"idle": _responses(running, tools, seconds)}
        # What the cores cannot do in the time.
        pages = int(20 * len(os.sched_getaffinity(0)) * (seconds + 5))
        paths = write_documents(folder / f"load{number}", 4, pages // 4 + 1, 300 + number)
        with _ingesting(running, paths):
            row["ingesting"] = _responses(running, tools, seconds)
        say(f"load  {row}")
        rows.append(row)
    return rows


def _responses(running: Running, tools: Tools, seconds: float) -> dict[str, Any]:
    work = Work("stream", CHAT_MODEL, CHATS, seconds=seconds, warm_up=1.0, chunks=50)
    with _probing(running.client.port) as spent:
        target = running.target
        with running_load(tools.load, work, target.port, target.path, target.key) as load:
            result = load.result()
    found = {name: result[name] for name in ("first_ms", "errors", "faults", "sample")}
    health = {"p50": quantile(spent, 0.5), "p99": quantile(spent, 0.99), "max": max(spent)}
    return {**found, "health": health, "probes": len(spent)}


@contextlib.contextmanager
def _probing(port: int) -> Iterator[list[float]]:
    """Ask for /health all the time; the list fills with milliseconds."""
    spent: list[float] = []
    over = threading.Event()
    probe = threading.Thread(target=_probe, args=(port, spent, over), daemon=True)
    probe.start()
    try:
        yield spent
    finally:
        over.set()
        probe.join()


def _probe(port: int, spent: list[float], over: threading.Event) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        while not over.wait(HEALTH_PAUSE):
            began = time.perf_counter()
            connection.request("GET", "/health")
            connection.getresponse().read()
            spent.append((time.perf_counter() - began) * 1000)

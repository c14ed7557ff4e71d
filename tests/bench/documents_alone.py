"""The work of ingesting with nothing around it: `python -m tests.bench.documents_alone STATE`.

Each line of standard input is a JSON list of paths. Those documents are extracted, cut and embedded by the
gateway's own processes, without requests and database; the answer is a line with the number of passages.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from gatewayd.extract.pool import ExtractorPool, PoolOptions
from gatewayd.ingest.embedder import BATCH_SIZE
from gatewayd.ingest.records import EmbeddingPurpose
from gatewayd.ingest.size_classes import OTHER_WORK
from gatewayd.tasks import TaskRegistry
from gatewayd.vectors.local import LocalEmbedder
from tests.bench.documents_site import ROOT, opened_embedder
from tests.bench.processes import follow_priority


class Alone:
    """Ingests documents, as many at a time as the gateway does."""

    def __init__(self, pool: ExtractorPool, embedder: LocalEmbedder, at_once: int) -> None:
        self._pool = pool
        self._embedder = embedder
        self._places = asyncio.Semaphore(at_once)

    async def ingest(self, paths: Sequence[Path]) -> int:
        """Do the work of all documents and return the number of passages."""
        return sum(await asyncio.gather(*map(self._ingest_one, paths)))

    async def _ingest_one(self, path: Path) -> int:
        async with self._places:
            extraction = await self._pool.extract(path, path.name, "application/pdf", OTHER_WORK)
            texts = [extraction.text[chunk.start : chunk.end] for chunk in extraction.chunks]
            for start in range(0, len(texts), BATCH_SIZE):
                await self._embedder.embed(texts[start : start + BATCH_SIZE], EmbeddingPurpose.PASSAGE)
        return len(texts)


async def serve(state: Path) -> None:
    """Answer until standard input ends."""
    cores = len(os.sched_getaffinity(0))
    tasks = TaskRegistry()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(tasks.close)
        pool = ExtractorPool(PoolOptions(state / "incoming", workers=cores), tasks)
        stack.push_async_callback(pool.close)
        embedder = await stack.enter_async_context(opened_embedder(state, tasks, threads=cores))
        alone = Alone(pool, embedder, cores + 1)
        while line := await asyncio.to_thread(sys.stdin.readline):
            passages = await alone.ingest([Path(name) for name in json.loads(line)])
            sys.stdout.write(f"{passages}\n")
            sys.stdout.flush()


class Asked:
    """A process that ingests documents when it is asked to."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ingest(self, paths: Sequence[Path]) -> int:
        """Have documents ingested and return the number of passages."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the process was started with pipes")
        self._process.stdin.write(json.dumps([str(path) for path in paths]) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextlib.contextmanager
def running_alone(state: Path) -> Iterator[Asked]:
    """Start the process, in a session of its own as the gateway is."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.documents_alone", str(state)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        follow_priority(process.pid)
        yield Asked(process)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))

"""Waiting: how long a small file takes until it is found while large ones are queued before it."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.bench.documents_corpus import Writer
from tests.bench.documents_site import Running
from tests.bench.measure import say
from tests.bench.tools import CannotRunError

QUEUED: Final = 73
PASSAGES: Final = 2_000
"""Of a queued file; about 2 MB."""
LONG_PASSAGES: Final = 20_000
"""Of every tenth one; about 19 MB."""
SMALL: Final = 12
PAUSE: Final = 5.0


def write_large(folder: Path, count: int, passages: int, long_passages: int) -> list[Path]:
    """Write texts, every tenth of them a long one."""
    folder.mkdir(parents=True)
    writer = Writer(11)
    paths = [folder / f"large {number}.txt" for number in range(count)]
    for number, path in enumerate(paths):
        size = long_passages if number % 10 == 0 else passages
        path.write_text("\n\n".join(writer.passage() for _ in range(size)))
    return paths


def measure_waiting(running: Running, folder: Path, small: int, pause: float, large: Sequence[Path]) -> Any:
    """Queue large files, then upload small ones of the same owner into the same collection, one after the
    other; return the seconds until each was found."""
    client = running.client
    collection_id = client.create_collection()
    queued = [client.upload(path, collection_id) for path in large]
    spent = []
    for number in range(small):
        path = folder / f"small {number}.txt"
        path.write_text(f"the word of this file is quokka{number:03d}")
        began = time.monotonic()
        file_id = client.upload(path, collection_id)
        client.wait([file_id])
        found = client.query(collection_id, f"quokka{number:03d}", k=10)
        spent.append(time.monotonic() - began)
        if file_id not in {passage["file_id"] for passage in found["metadatas"][0]}:
            raise CannotRunError(f"{path.name} was not found by its word")
        say(f"waiting  small file {number}: {spent[-1]:.2f} s")
        time.sleep(pause)
    if client.status(queued[-1]) == "completed":
        raise CannotRunError("the large files were done too early: nothing was queued before the small ones")
    row = {"queued": len(queued), "bytes": sum(path.stat().st_size for path in large), "seconds": spent}
    for file_id in queued:
        client.send("DELETE", f"/api/v1/files/{file_id}")
    return row

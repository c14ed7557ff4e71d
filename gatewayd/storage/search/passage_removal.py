"""Removal of passages on SQLite: of removed files, of former texts, and of words that leave a collection.

SQLite has one writer, and removing the words of a large file takes seconds. So the change that makes passages
stale only moves them to a marker, a row of `files` that no store returns. `purge` removes them in short
transactions, their words first: FTS5 has to be told the text that it is to forget. After a kill the next
start goes on with the markers that are left. Few passages are removed at once, and so are all on PostgreSQL,
where nobody else waits for it.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Any, Final

from gatewayd.errors import GatewayError
from gatewayd.ids import digest
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import decode, encode
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.search import fts
from gatewayd.storage.tables.documents import (
    REMOVED,
    CollectionRow,
    FileRow,
    PassageRow,
)

log = logging.getLogger(__name__)

MAX_PART_ROWS: Final = 200
"""Passages whose words one transaction adds or removes: of Chinese text about 0.1 s."""

RETRY_SECONDS: Final = 10.0

MIN_ID_LENGTH: Final = 33
MARKER_PREFIX: Final = "~"
"""What the id of a marker begins with, and no id of a file."""

MARKER_COLUMNS: Final = {
    "user_id": "",
    "name": "",
    "name_key": "",
    "size": 0,
    "digest": "",
    "checksum": "",
    "status": REMOVED,
    "characters": 0,
    "chunks": 0,
    "created_at": 0,
}


def is_marker(file_id: str) -> bool:
    """Tell whether an id is that of a marker."""
    return file_id.startswith(MARKER_PREFIX)


async def discard(client: Any, file_id: str, *, staged: bool | None = None) -> bool:
    """Remove the passages of a file, only the staged or the published ones unless `staged` is None.

    Their words leave all collections that hold the file. True when some of this is left to `purge`; nobody
    finds the passages in either case.
    """
    which = {"file_id": file_id} if staged is None else {"file_id": file_id, "staged": staged}
    count = await PassageRow.filter(**which).count()
    if not count:
        return False
    if not fts.has_tables(client):
        await PassageRow.filter(**which).delete()
        return False
    # Words may still be in a collection that the file has left.
    numbers = {*await fts.collection_numbers(client, file_id), *_numbers(await _marker(file_id))}
    if count > MAX_PART_ROWS:
        marker = await _mark(file_id, numbers)
        await PassageRow.filter(**which).update(file_id=marker, staged=True)
        return True
    for number in await _existing(numbers):
        await fts.remove(client, number, file_id, staged=staged)
    await PassageRow.filter(**which).delete()
    return False


async def detach(client: Any, number: int, file_ids: Sequence[str]) -> bool:
    """Remove the words of files from a collection that holds them no longer; True when some are left to
    `purge`."""
    if not fts.has_tables(client):
        return False
    is_left = False
    room = MAX_PART_ROWS
    for file_id in file_ids:
        room -= await PassageRow.filter(file_id=file_id).count()
        if room >= 0:
            await fts.remove(client, number, file_id)
        else:
            await _mark(file_id, {number})
            is_left = True
    return is_left


async def prepare(file_id: str) -> None:
    """Add the words of a file's staged passages to its collections, so that publishing has few to add."""
    client = PassageRow._meta.db
    if not fts.has_tables(client):
        return
    with translate_errors("read the passages of the file"):
        parts = await _parts(file_id, staged=True)
    # One part is as fast with the rest of what is published.
    for first, last in parts if len(parts) > 1 else ():
        async with write_transaction("add the words of the file") as client:
            for number in await fts.collection_numbers(client, file_id):
                await fts.add_staged(client, number, file_id, first, last)


async def purge() -> None:
    """Remove what is stale, in short transactions between which others write.

    Raises the first failure, after what can be removed has been.
    """
    with translate_errors("look for stale passages"):
        markers: list[Any] = list(await FileRow.filter(status=REMOVED).values_list("id", flat=True))
    failures = []
    for marker in markers:
        try:
            while not await _purge(marker):
                pass
        except GatewayError as error:
            failures.append(error)
    if failures:
        raise failures[0]


class StaleSweeper:
    """Purges what is stale, at the start and when it is told that there is more."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Look again: something became stale."""
        self._woken.set()

    async def run(self) -> None:
        """Purge for ever."""
        while True:
            self._woken.clear()
            try:
                await purge()
            except GatewayError as error:
                log.warning("stale passages cannot be removed now: %s", error.message)
                await asyncio.sleep(RETRY_SECONDS)
            else:
                await self._woken.wait()


async def _purge(marker: str) -> bool:
    """Remove what a marker has now; False when there is more since."""
    with translate_errors("read stale passages"):
        row = await FileRow.get_or_none(id=marker)
        if row is None:
            return True
        file_id = _data(row)["file"]
        parts = await _parts(marker, staged=True)
        left = _numbers(row) - {*await fts.collection_numbers(FileRow._meta.db, file_id)}
        others = await _parts(file_id) if left else ()
    for first, last in parts:
        await _remove_part(marker, first, last)
    for first, last in others:
        await _detach_part(marker, file_id, first, last)
    async with write_transaction("remove stale passages"):
        # It counts how often it was marked; one that was made anew meanwhile has passages.
        if not await PassageRow.filter(file_id=marker).exists():
            await FileRow.filter(id=marker, updated_at=row.updated_at).delete()
        return not await FileRow.filter(id=marker).exists()


async def _remove_part(marker: str, first: int, last: int) -> None:
    async with write_transaction("remove stale passages") as client:
        row = await FileRow.get_or_none(id=marker)
        for number in await _existing(_numbers(row)):
            await fts.remove_between(client, number, marker, first, last)
        await PassageRow.filter(file_id=marker, id__gte=first, id__lte=last).delete()


async def _detach_part(marker: str, file_id: str, first: int, last: int) -> None:
    """Remove the words of some passages from the collections that hold their file no longer."""
    async with write_transaction("remove stale words") as client:
        row = await FileRow.get_or_none(id=marker)
        for number in await _existing(_numbers(row) - {*await fts.collection_numbers(client, file_id)}):
            await fts.remove_between(client, number, file_id, first, last)


async def _mark(file_id: str, numbers: Iterable[int]) -> str:
    """Note that words of a file's passages are stale in collections; return the id of the marker."""
    row = await _marker(file_id)
    data = encode({"file": file_id, "numbers": sorted({*_numbers(row), *numbers})}, "data")
    if row is None:
        row = FileRow(id=_marker_id(file_id), updated_at=0, data=data, **MARKER_COLUMNS)
        await row.save(force_create=True)
    else:
        await FileRow.filter(id=row.id).update(data=data, updated_at=row.updated_at + 1)
    return str(row.id)


async def _marker(file_id: str) -> FileRow | None:
    return await FileRow.get_or_none(id=_marker_id(file_id))


def _marker_id(file_id: str) -> str:
    # As long as the id where that is long enough: SQLite then changes the rows of passages in place.
    return f"{MARKER_PREFIX}{digest(file_id)}"[: max(len(file_id), MIN_ID_LENGTH)]


def _data(row: FileRow) -> Any:
    return decode(row.data, f"the data of marker {row.id}")


def _numbers(row: FileRow | None) -> set[int]:
    """Return the collections that a marker names."""
    return set() if row is None else set(_data(row)["numbers"])


async def _existing(numbers: Iterable[int]) -> Sequence[int]:
    """Return those of the collections that are there: the words of a removed one are gone with it."""
    found: list[Any] = list(
        await CollectionRow.filter(number__in=list(numbers))
        .order_by("number")
        .values_list("number", flat=True)
    )
    return found


async def _parts(file_id: str, **which: Any) -> Sequence[tuple[int, int]]:
    """Return the first and the last id of each part of the passages of a file."""
    parts: list[tuple[int, int]] = []
    last = 0
    while True:
        passages = PassageRow.filter(file_id=file_id, id__gt=last, **which).order_by("id")
        ids: list[Any] = list(await passages.limit(MAX_PART_ROWS).values_list("id", flat=True))
        if not ids:
            return parts
        parts.append((ids[0], ids[-1]))
        last = ids[-1]

"""Removal of stale passages on SQLite: of removed files, of replaced texts, and words of unlinked files.

SQLite has one writer, and removing the words of a large file takes seconds. So the change that makes passages
stale only moves them to a marker, a row of `files` that no store returns. `purge` removes them in short
transactions, their words first, because FTS5 needs the text to delete. After a kill the next start continues
with the remaining markers. A small number of passages is removed immediately; so are all passages on
PostgreSQL, where other writers do not wait.
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
from gatewayd.storage.tables.documents import REMOVED, CollectionRow, FileRow, PassageRow

log = logging.getLogger(__name__)

MAX_PART_ROWS: Final = 200
"""Passages whose words one transaction adds or removes; takes about 0.1 s for Chinese text."""

RETRY_SECONDS: Final = 10.0

MIN_ID_LENGTH: Final = 33
MARKER_PREFIX: Final = "~"
"""Prefix of the ids of markers; no id of a file has it."""

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
    """Return whether an id is the id of a marker."""
    return file_id.startswith(MARKER_PREFIX)


async def discard(client: Any, file_id: str, *, staged: bool | None = None) -> bool:
    """Remove the passages of a file: the staged (True) or the published (False) ones, or both (None).

    Their words are removed from all collections that contain the file. Returns True when a part is left to
    `purge`; searches do not find the passages in either case.
    """
    which = {"file_id": file_id} if staged is None else {"file_id": file_id, "staged": staged}
    count = await PassageRow.filter(**which).count()
    if not count:
        return False
    if not fts.has_tables(client):
        await PassageRow.filter(**which).delete()
        return False
    # A collection that no longer contains the file may still have its words.
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
    """Remove the words of unlinked files from a collection; True when some are left to `purge`."""
    if not fts.has_tables(client):
        return False
    is_left = False
    remaining = MAX_PART_ROWS
    for file_id in file_ids:
        remaining -= await PassageRow.filter(file_id=file_id).count()
        if remaining >= 0:
            await fts.remove(client, number, file_id)
        else:
            await _mark(file_id, {number})
            is_left = True
    return is_left


async def prepare(file_id: str) -> None:
    """Add the words of a file's staged passages to its collections in advance, so that `publish` is short."""
    client = PassageRow._meta.db
    if not fts.has_tables(client):
        return
    with translate_errors("read the passages of the file"):
        parts = await _parts(file_id, staged=True)
    # A single part is just as fast inside of `publish`.
    for first, last in parts if len(parts) > 1 else ():
        async with write_transaction("add the words of the file") as client:
            for number in await fts.collection_numbers(client, file_id):
                await fts.add_staged(client, number, file_id, first, last)


async def purge() -> None:
    """Remove stale passages and words, in short transactions between which others write.

    Raises the first failure after it has tried all markers.
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
    """Purges stale passages at the start and after each `wake`."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Purge again, because passages became stale."""
        self._woken.set()

    async def run(self) -> None:
        """Purge in an endless loop."""
        while True:
            self._woken.clear()
            try:
                await purge()
            except GatewayError as error:
                log.warning("cannot remove stale passages now: %s", error.message)
                await asyncio.sleep(RETRY_SECONDS)
            else:
                await self._woken.wait()


async def _purge(marker: str) -> bool:
    """Remove the present passages and words of a marker; False when it has got more since."""
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
        # `updated_at` counts the calls of `_mark`; a recreated marker has passages.
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
    """Remove the words of some passages from the collections that no longer contain their file."""
    async with write_transaction("remove stale words") as client:
        row = await FileRow.get_or_none(id=marker)
        for number in await _existing(_numbers(row) - {*await fts.collection_numbers(client, file_id)}):
            await fts.remove_between(client, number, file_id, first, last)


async def _mark(file_id: str, numbers: Iterable[int]) -> str:
    """Record in the marker of a file that its words are stale in collections; return the marker's id."""
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
    # As long as the file id if possible: SQLite then updates the rows of passages in place.
    return f"{MARKER_PREFIX}{digest(file_id)}"[: max(len(file_id), MIN_ID_LENGTH)]


def _data(row: FileRow) -> Any:
    return decode(row.data, f"the data of marker {row.id}")


def _numbers(row: FileRow | None) -> set[int]:
    """Return the numbers of the collections in a marker."""
    return set() if row is None else set(_data(row)["numbers"])


async def _existing(numbers: Iterable[int]) -> Sequence[int]:
    """Return the numbers of existing collections; the words of a removed one were dropped with its table."""
    found: list[Any] = list(
        await CollectionRow.filter(number__in=list(numbers))
        .order_by("number")
        .values_list("number", flat=True)
    )
    return found


async def _parts(file_id: str, **which: Any) -> Sequence[tuple[int, int]]:
    """Return the first and last id of each part of the passages of a file, at most MAX_PART_ROWS each."""
    parts: list[tuple[int, int]] = []
    last = 0
    while True:
        passages = PassageRow.filter(file_id=file_id, id__gt=last, **which).order_by("id")
        ids: list[Any] = list(await passages.limit(MAX_PART_ROWS).values_list("id", flat=True))
        if not ids:
            return parts
        parts.append((ids[0], ids[-1]))
        last = ids[-1]

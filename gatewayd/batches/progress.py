"""Progress of a batch: its answers, in a file of this machine, and in rows that any node goes on from."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gatewayd.batches.interfaces import AnswerStore
from gatewayd.batches.progress_file import FinishedLine, ProgressFile, encode_records, parse_record
from gatewayd.errors import ErrorKind, GatewayError, full_message

log = logging.getLogger(__name__)

PIECE_BYTES: Final = 1 << 20


class BatchProgress:
    """The answers of one batch.

    With `answers` the rows are the truth, and the file is a copy that `open` makes anew; without them the
    file is the truth.
    """

    def __init__(self, batch_id: str, file: ProgressFile, answers: AnswerStore | None = None) -> None:
        self._batch_id = batch_id
        self._file = file
        self._answers = answers

    @property
    def size(self) -> int:
        """Number of bytes of all records."""
        return self._file.size

    @property
    def completed(self) -> int:
        """Number of requests that succeeded."""
        return self._file.completed

    @property
    def failed(self) -> int:
        """Number of requests that failed."""
        return self._file.failed

    async def open(self, total: int) -> None:
        """Read the answers of an earlier run; raises OSError and unavailable."""
        if self._answers is not None:
            await _copy(self._batch_id, self._file, self._answers)
        await asyncio.to_thread(self._file.open, total)

    def is_done(self, number: int) -> bool:
        """Whether a line has its answer."""
        return self._file.is_done(number)

    async def append(self, *records: FinishedLine) -> None:
        """Store answers; when this returns, they survive a power failure.

        Raises OSError; with rows unavailable, not_found without the batch, and conflict once another node has
        taken it over.
        """
        if self._answers is not None:
            await self._answers.add(self._batch_id, await asyncio.to_thread(encode_records, records))
        await asyncio.to_thread(self._file.append, *records)

    def records(self) -> Iterator[FinishedLine]:
        """Yield the records, in the order in which they were stored; blocks."""
        return self._file.records()

    async def close(self) -> None:
        """Close the file, and delete a copy: another node may go on, or the user be erased."""
        await asyncio.to_thread(self._file.close if self._answers is None else self._file.remove)

    async def remove(self) -> None:
        """Delete the answers; raises conflict once another node has taken the batch over."""
        if self._answers is not None:
            await self._answers.remove(self._batch_id)
        await asyncio.to_thread(self._file.remove)


async def take_over_files(folder: Path, answers: AnswerStore) -> None:
    """Store the answers in files, whose names are the ids of their batches, unless there are rows.

    A file that cannot be read stays, and its lines run again. One that cannot be deleted stays, too. Raises
    unavailable.
    """
    for path in await asyncio.to_thread(lambda: sorted(folder.iterdir()) if folder.exists() else []):
        try:
            await answers.take_over(path.name, _pieces(path))
            await asyncio.to_thread(path.unlink, missing_ok=True)
        except GatewayError as error:
            if error.kind is not ErrorKind.INTERNAL:
                raise
            log.warning("%s", error.full_message)
        except OSError as error:
            log.warning("cannot delete former answers of batches: %s", full_message(error))


async def move_to_files(folder: Path, answers: AnswerStore) -> None:
    """Store the answers of rows in files, after a copy of a database whose answers were rows.

    The rows of a batch go when its file is on the disk. Raises OSError and unavailable.
    """
    await answers.remove_ended()
    for batch_id in await answers.batch_ids():
        file = ProgressFile(folder / batch_id)
        await _copy(batch_id, file, answers)
        await asyncio.to_thread(file.sync)
        await answers.remove(batch_id)


async def _copy(batch_id: str, file: ProgressFile, answers: AnswerStore) -> None:
    await asyncio.to_thread(file.clear)
    async for piece in answers.read(batch_id):
        await asyncio.to_thread(file.extend, piece)


def _pieces(path: Path) -> Iterator[bytes]:
    """Yield the whole records of a file in pieces; blocks. Raises internal if it cannot be read."""
    piece = bytearray()
    try:
        with path.open("rb") as file:
            for line in file:
                # What is stored behind a damaged record would not be found.
                if parse_record(line) is None:
                    break
                piece += line
                if len(piece) >= PIECE_BYTES:
                    yield bytes(piece)
                    piece.clear()
    except OSError as error:
        # The database is not to blame, in whose transaction this is read.
        sentence = f"cannot take over the answers of the batch {path.name}: {full_message(error)}"
        raise GatewayError(ErrorKind.INTERNAL, sentence) from error
    if piece:
        yield bytes(piece)

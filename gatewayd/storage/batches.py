"""Stores of batches and of their files."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, fields
from typing import Any, Final

from gatewayd.batches.interfaces import Fence
from gatewayd.batches.passed_state import PassedState, state_of
from gatewayd.batches.records import UNFINISHED, Batch, BatchDialect, BatchFile, BatchStatus
from gatewayd.errors import GatewayError, not_found
from gatewayd.metering.usage_records import UsageKey, UsageSums
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import decode, encode_sanitised, fits_columns
from gatewayd.storage.engine.statements import SqlStatement, storable_ids
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.engine.upserts import insert_rows, insert_unless_present, upsert_rows
from gatewayd.storage.limits.usage import TortoiseUsage
from gatewayd.storage.tables.batches import BatchAnswersRow, BatchFileRow, BatchRow, PassedBatchRow

JSON_COLUMNS: Final = frozenset({"metadata", "errors"})
FILE_COLUMNS: Final = ", ".join(each.name for each in fields(BatchFile))
COLUMNS: Final = ", ".join(each.name for each in fields(Batch))
PAGE_SIZE: Final = 1000
REMOVED_ROWS: Final = 200
READ_BYTES: Final = 8 << 20
"""Answers that are read at once; one larger row is read alone."""


class TortoiseBatches:
    """Implements `batches.interfaces.BatchStore`; `fence` is that of the worker."""

    def __init__(self, fence: Fence = nullcontext) -> None:
        self._fence = fence

    async def add(self, batch: Batch) -> None:
        """Insert a batch."""
        columns = {each.name: getattr(batch, each.name) for each in fields(Batch)}
        async with write_transaction("add the batch"):
            await insert_rows(BatchRow, [_stored(columns)])

    async def find(self, batch_id: str) -> Batch | None:
        """Return one batch."""
        if not fits_columns(BatchRow, id=batch_id):
            return None
        with translate_errors("read a batch"):
            row = await BatchRow.get_or_none(id=batch_id)
        return None if row is None else _batch_of(row)

    async def list(
        self,
        user_id: str | None,
        dialect: BatchDialect | None,
        *,
        after: str | None,
        limit: int,
        before: str | None = None,
    ) -> Sequence[Batch]:
        """Return batches, newest first: the order of their ids, which begin with the time of creation."""
        statement = SqlStatement(BatchRow._meta.db)
        wanted = ["1 = 1"]
        for column, value, comparison in (
            ("user_id", user_id, "="),
            ("dialect", dialect and dialect.value, "="),
            ("id", after, "<"),
            ("id", before, ">"),
        ):
            if value is None:
                continue
            if not fits_columns(BatchRow, **{column: value}):
                return []
            wanted.append(f"{column} {comparison} {statement.bind(value)}")
        order = "ASC" if before is not None else "DESC"
        with translate_errors("list batches"):
            rows = await statement.run(
                f"SELECT {COLUMNS} FROM batches WHERE {' AND '.join(wanted)}"  # noqa: S608 - no values
                f" ORDER BY created_at {order}, id {order} LIMIT {statement.bind(limit)}"
            )
        found = [_batch_of(BatchRow._init_from_db(**row)) for row in rows]
        return found[::-1] if before is not None else found

    async def unfinished(self) -> Sequence[Batch]:
        """Return the batches with work to do, oldest first."""
        with translate_errors("list batches"):
            rows = await BatchRow.filter(status__in=_values(UNFINISHED)).order_by("created_at", "id")
        return [_batch_of(row) for row in rows]

    async def count_unfinished(self, user_id: str) -> int:
        """Return how many batches of a user have work to do."""
        with translate_errors("count batches"):
            return await BatchRow.filter(user_id=user_id, status__in=_values(UNFINISHED)).count()

    async def change(self, batch_id: str, states: Collection[BatchStatus], **columns: Any) -> bool:
        """Change columns of a batch in one of these states."""
        async with self._fence(), write_transaction("change the batch"):
            mine = BatchRow.filter(id=batch_id, status__in=_values(states))
            return await mine.update(**_stored(columns)) > 0

    async def store_usage(
        self, batch_id: str, usage: Mapping[UsageKey, UsageSums], completed: int, failed: int
    ) -> bool:
        """Add to the usage and set the counts of a batch, in one transaction."""
        async with self._fence(), write_transaction("count the answers of the batch"):
            if not await self.change(batch_id, UNFINISHED, completed=completed, failed=failed):
                return False
            if usage:
                await TortoiseUsage().add(usage)
            return True

    async def remove(self, batch_id: str) -> bool:
        """Delete a batch."""
        async with write_transaction("delete the batch"):
            return await BatchRow.filter(id=batch_id).delete() > 0

    async def prune(self, before: int) -> int:
        """Delete the batches that ended before a time."""
        async with write_transaction("delete old batches"):
            return int(await BatchRow.filter(ended_at__lt=before).delete())


class TortoisePassedStates:
    """Implements `batches.interfaces.PassedStateStore`; `fence` is that of the worker."""

    def __init__(self, fence: Fence = nullcontext) -> None:
        self._fence = fence

    async def find(self, batch_id: str) -> PassedState | None:
        """Return the state of a batch."""
        with translate_errors("read the state of a batch"):
            row = await PassedBatchRow.get_or_none(batch_id=batch_id)
        return None if row is None else state_of(decode(row.state, f"the state of the batch {batch_id}"))

    async def save(self, batch_id: str, state: PassedState) -> None:
        """Replace a state."""
        async with self._fence(), write_transaction("store the state of a batch", _missing(batch_id)):
            await upsert_rows(PassedBatchRow, [_state_columns(batch_id, state)], ["batch_id"])

    async def add(self, batch_id: str, state: PassedState) -> None:
        """Insert a state unless there is one."""
        if not fits_columns(BatchRow, id=batch_id):
            raise _missing(batch_id)
        async with write_transaction("store the state of a batch", _missing(batch_id)):
            await insert_unless_present(PassedBatchRow, _state_columns(batch_id, state), "batch_id")

    async def remove(self, batch_id: str) -> None:
        """Delete the state of a batch."""
        async with self._fence(), write_transaction("delete the state of a batch"):
            await PassedBatchRow.filter(batch_id=batch_id).delete()


class TortoiseBatchAnswers:
    """Implements `batches.interfaces.AnswerStore`; `fence` is that of the worker."""

    def __init__(self, fence: Fence = nullcontext) -> None:
        self._fence = fence

    async def add(self, batch_id: str, records: bytes) -> None:
        """Store answers."""
        async with self._fence(), write_transaction("store answers of a batch", _missing(batch_id)):
            await insert_rows(BatchAnswersRow, [_answer_columns(batch_id, records)])

    async def read(self, batch_id: str) -> AsyncIterator[bytes]:
        """Yield the answers of a batch, at most READ_BYTES or one row at once."""
        last = 0
        while True:
            with translate_errors("read the answers of a batch"):
                known = BatchAnswersRow.filter(batch_id=batch_id, id__gt=last).order_by("id").limit(PAGE_SIZE)
                sizes = await known.values_list("id", "size")
            if not sizes:
                return
            for first, last in _spans(sizes):
                with translate_errors("read the answers of a batch"):
                    rows = await BatchAnswersRow.filter(
                        batch_id=batch_id, id__gte=first, id__lte=last
                    ).order_by("id")
                yield b"".join([bytes(row.records) for row in rows])

    async def batch_ids(self) -> Collection[str]:
        """Return the ids of the batches that have answers."""
        with translate_errors("list the answers of batches"):
            rows = await BatchAnswersRow.all().distinct().values("batch_id")
        return {row["batch_id"] for row in rows}

    async def take_over(self, batch_id: str, pieces: Iterator[bytes]) -> bool:
        """Store answers from a file."""
        if not fits_columns(BatchRow, id=batch_id):
            return False
        async with write_transaction("take over the answers of a batch"):
            statement = SqlStatement(BatchRow._meta.db)
            # The lock: of two nodes that start with a file one stores its answers.
            found = await statement.run(
                f"UPDATE batches SET total = total WHERE id = {statement.bind(batch_id)}"  # noqa: S608
                f" AND status IN ({statement.bind_all(_values(UNFINISHED))}) RETURNING id"
            )
            if not found or await BatchAnswersRow.filter(batch_id=batch_id).exists():
                return False
            while piece := await asyncio.to_thread(next, pieces, b""):
                await insert_rows(BatchAnswersRow, [_answer_columns(batch_id, piece)])
        return True

    async def remove(self, batch_id: str) -> None:
        """Delete the answers of a batch."""
        await self._remove(lambda statement: f"batch_id = {statement.bind(batch_id)}")

    async def remove_ended(self) -> None:
        """Delete the answers of batches that have ended."""
        await self._remove(
            lambda statement: (
                "batch_id IN (SELECT id FROM batches WHERE status NOT IN"  # noqa: S608 - no values
                f" ({statement.bind_all(_values(UNFINISHED))}))"
            )
        )

    async def _remove(self, condition: Callable[[SqlStatement], str]) -> None:
        """Delete the rows of a condition, REMOVED_ROWS in a transaction: the lease is not renewed in one."""
        removed = REMOVED_ROWS
        while removed == REMOVED_ROWS:
            async with self._fence(), write_transaction("delete answers of batches"):
                statement = SqlStatement(BatchAnswersRow._meta.db)
                rows = await statement.run(
                    "DELETE FROM batch_answers WHERE id IN (SELECT id FROM batch_answers"  # noqa: S608
                    f" WHERE {condition(statement)} ORDER BY id LIMIT {REMOVED_ROWS}) RETURNING id"
                )
            removed = len(rows)


class TortoiseBatchFiles:
    """Implements `batches.interfaces.BatchFileStore`."""

    async def add(self, file: BatchFile) -> None:
        """Insert a file."""
        async with write_transaction("add the file"):
            await insert_rows(
                BatchFileRow, [{each.name: getattr(file, each.name) for each in fields(BatchFile)}]
            )

    async def find(self, file_id: str) -> BatchFile | None:
        """Return one file."""
        if not fits_columns(BatchFileRow, id=file_id):
            return None
        with translate_errors("read a file"):
            row = await BatchFileRow.get_or_none(id=file_id)
        return None if row is None else _file_of(row)

    async def list(
        self, user_id: str, purpose: str | None, *, after: str | None, limit: int
    ) -> Sequence[BatchFile]:
        """Return files of a user, newest first: the order of their ids."""
        if not fits_columns(BatchFileRow, id=after or "", purpose=purpose or ""):
            return []
        wanted = BatchFileRow.filter(user_id=user_id)
        if purpose is not None:
            wanted = wanted.filter(purpose=purpose)
        if after is not None:
            wanted = wanted.filter(id__lt=after)
        with translate_errors("list files"):
            rows = await wanted.order_by("-created_at", "-id").limit(limit)
        return [_file_of(row) for row in rows]

    async def usage(self, user_id: str) -> tuple[int, int]:
        """Return the number of files of a user, and of their bytes."""
        statement = SqlStatement(BatchFileRow._meta.db)
        with translate_errors("count files"):
            [row] = await statement.run(
                "SELECT COUNT(*) AS files, COALESCE(SUM(size), 0) AS bytes FROM batch_files"  # noqa: S608
                f" WHERE user_id = {statement.bind(user_id)}"
            )
        return int(row["files"]), int(row["bytes"])

    async def named(self, user_id: str, purpose: str, name: str) -> Sequence[str]:
        """Return ids of the files of a user with a purpose and a name."""
        with translate_errors("list files"):
            rows = await BatchFileRow.filter(user_id=user_id, purpose=purpose, name=name)
        return [row.id for row in rows]

    async def remove(self, file_ids: Iterable[str]) -> None:
        """Delete files."""
        async with write_transaction("delete files"):
            await BatchFileRow.filter(id__in=storable_ids(BatchFileRow, list(file_ids))).delete()

    async def expired(self, now: int, most: int) -> Sequence[str]:
        """Return ids of files that expired and that no unfinished batch reads."""
        with translate_errors("list files"):
            unfinished = BatchRow.filter(status__in=_values(UNFINISHED))
            read = await unfinished.values_list("input_file_id", flat=True)
            rows = await BatchFileRow.filter(expires_at__lte=now).order_by("expires_at").limit(most)
        kept = set(read)
        return [row.id for row in rows if row.id not in kept]

    async def ids(self) -> AsyncIterator[str]:
        """Yield the ids of all files."""
        last = ""
        while True:
            with translate_errors("list files"):
                rows = await BatchFileRow.filter(id__gt=last).order_by("id").limit(PAGE_SIZE)
            for row in rows:
                yield row.id
            if len(rows) < PAGE_SIZE:
                return
            last = rows[-1].id


def _missing(batch_id: str) -> GatewayError:
    return not_found("batch", batch_id)


def _answer_columns(batch_id: str, records: bytes) -> dict[str, Any]:
    return {"batch_id": batch_id, "size": len(records), "records": records}


def _spans(sizes: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last ids of rows that are read at once, from ids and sizes."""
    first, last, total = 0, 0, 0
    for row_id, size in sizes:
        if first and total + size > READ_BYTES:
            yield first, last
            first, total = 0, 0
        first, last, total = first or row_id, row_id, total + size
    yield first, last


def _state_columns(batch_id: str, state: PassedState) -> dict[str, Any]:
    return {"batch_id": batch_id, "state": encode_sanitised(asdict(state), "state")}


def _values(states: Collection[BatchStatus]) -> list[str]:
    return [state.value for state in states]


def _stored(columns: dict[str, Any]) -> dict[str, Any]:
    found = {
        name: encode_sanitised(value, name) if name in JSON_COLUMNS else value
        for name, value in columns.items()
    }
    return {
        name: value.value if isinstance(value, BatchStatus | BatchDialect) else value
        for name, value in found.items()
    }


def _batch_of(row: Any) -> Batch:
    what = f"the batch {row.id}"
    plain = {each.name: getattr(row, each.name) for each in fields(Batch) if each.name not in JSON_COLUMNS}
    read = {name: decode(getattr(row, name), what) for name in JSON_COLUMNS}
    states = {"dialect": BatchDialect(row.dialect), "status": BatchStatus(row.status)}
    return Batch(**{**plain, **read, **states})


def _file_of(row: Any) -> BatchFile:
    return BatchFile(**{each.name: getattr(row, each.name) for each in fields(BatchFile)})

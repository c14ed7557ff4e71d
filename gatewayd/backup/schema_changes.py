"""The schema of a database that no daemon uses: its status, a plan, a migration with a copy before, and back.

The copy of SQLite is a file beside the database, that of PostgreSQL a file of SQLite in the state directory.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from gatewayd import ids
from gatewayd.backup.places import GatewayPlace
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.fsync import sync_to_disk
from gatewayd.storage.engine import migrate
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import DatabaseLocation, parse
from gatewayd.storage.engine.lock import lock_copying, lock_folder, refuse_interrupted
from gatewayd.storage.transfer import engine_copy, sqlite_files
from gatewayd.storage.transfer.row_sums import TableSum

BEFORE: Final = "before-"
POSTGRES_NAME: Final = "postgresql"

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SchemaCopy:
    """A copy of the database from before a migration: its label, file, size and time (epoch seconds)."""

    label: str
    path: Path
    size: int
    made_at: int


@dataclass(frozen=True, slots=True)
class SchemaState:
    """The schema: `problem` is "" if this version can use it; `copies` are the newest first."""

    address: str
    applied: Sequence[str]
    pending: Sequence[str]
    problem: str
    copies: Sequence[SchemaCopy]


class SchemaWork:
    """What is done to the schema of one gateway."""

    def __init__(self, place: GatewayPlace, progress: Progress) -> None:
        self._place = place
        self._location = place.location
        self._progress = progress

    async def status(self) -> SchemaState:
        """Return the state of the schema; the daemon may run."""
        if self._location.path is not None and not self._location.path.exists():
            return SchemaState(self._location.address, [], migrate.known_migrations(), "", self.copies())
        async with Database.open(self._location) as database:
            status = await migrate.read_status(database)
        problem = ""
        try:
            migrate.check(status)
        except GatewayError as error:
            problem = error.message if not status.is_fresh or status.is_incomplete else ""
        return SchemaState(self._location.address, status.applied, status.pending, problem, self.copies())

    async def plan(self) -> Sequence[tuple[str, Sequence[str]]]:
        """Return the pending migrations with their SQL; the daemon may run."""
        if self._location.path is not None and not self._location.path.exists():
            return [(name, ["-- a new database"]) for name in migrate.known_migrations()]
        async with Database.open(self._location) as database:
            return await migrate.plan_migrations(database)

    async def migrate(self) -> Sequence[str]:
        """Apply what is pending, after a copy; conflict while a daemon runs."""
        with lock_folder(self._place.data_dir):
            refuse_interrupted(self._place.data_dir)
            await keep_postgres(self._location, self._place.data_dir, self._progress)
            return await migrate.migrate(self._location)

    async def rollback(self, label: str) -> SchemaCopy:
        """Return to a copy, the newest one without a label; the present database is kept beside it.

        Raises conflict while a daemon runs, not_found without the copy.
        """
        with lock_folder(self._place.data_dir), lock_copying(self._place.data_dir):
            refuse_interrupted(self._place.data_dir)
            copy = self._find(label)
            if copy.path.is_file() and sqlite_files.find_damage(copy.path):
                raise GatewayError(ErrorKind.INTERNAL, f"cannot return to {copy.path}: it is damaged")
            if self._location.path is None:
                async with Database.open(self._location) as database:
                    await database.own()
                    await self._return_postgres(copy)
            else:
                async with Database.open(self._location) as database:
                    await database.own()
                self._return_file(self._location.path, copy)
        return copy

    def copies(self) -> Sequence[SchemaCopy]:
        """Return the copies from before migrations, newest first."""
        begin = self._begin()
        found = []
        for path in begin.parent.glob(f"{begin.name}.{BEFORE}*"):
            if not path.name.endswith((".part", "-wal", "-shm")):
                facts = path.stat()
                label = path.name.removeprefix(f"{begin.name}.{BEFORE}")
                found.append(SchemaCopy(label, path, facts.st_size, int(facts.st_mtime)))
        return sorted(found, key=lambda each: (each.made_at, each.label), reverse=True)

    def _begin(self) -> Path:
        return self._location.path or self._place.data_dir / POSTGRES_NAME

    def _find(self, label: str) -> SchemaCopy:
        wanted = label.removeprefix(BEFORE)
        for each in self.copies():
            if wanted in {"", each.label}:
                return each
        raise GatewayError(
            ErrorKind.NOT_FOUND,
            f"cannot return to the schema before {wanted or 'the last migration'}: there is no copy of it",
        )

    def _return_file(self, path: Path, copy: SchemaCopy) -> None:
        """Put a copy in the place of a file that nobody uses; each step leaves one whole database."""
        stamp = datetime.fromtimestamp(ids.now(), UTC).strftime("%Y%m%dT%H%M%SZ")
        part = path.with_name(f"{path.name}.part")
        part.unlink(missing_ok=True)
        with sqlite_files.open_snapshot(copy.path) as snapshot:
            snapshot.write(part)
        with sqlite_files.open_snapshot(path) as snapshot:
            snapshot.write(path.with_name(f"{path.name}.replaced-{stamp}"))
        # The log of the present file would be applied to the copy.
        sqlite_files.end_log(path)
        part.replace(path)
        sync_to_disk(path.parent)

    async def _return_postgres(self, copy: SchemaCopy) -> None:
        stamp = datetime.fromtimestamp(ids.now(), UTC).strftime("%Y%m%dT%H%M%SZ")
        former = self._place.data_dir / f"{POSTGRES_NAME}.replaced-{stamp}"
        async with Database.open(self._location) as database:
            status = await migrate.read_status(database)
        unknown = [name for name in status.applied if name not in status.known]
        if status.tables and not status.is_incomplete and not unknown:
            await engine_copy.fill_sqlite(self._location, former, progress=self._progress)
        await engine_copy.fill_postgres(copy.path, self._location, replace=True, progress=self._progress)


async def keep_postgres(location: DatabaseLocation, data_dir: Path, progress: Progress) -> Path | None:
    """Copy a PostgreSQL database that is about to be migrated; return the file, None if nothing is pending.

    The engine of SQLite copies its file itself.
    """
    if location.path is not None:
        return None
    async with Database.open(location) as database:
        status = await migrate.read_status(database)
    if status.is_fresh or not status.pending or status.is_incomplete:
        return None
    target = data_dir / f"{POSTGRES_NAME}.{BEFORE}{status.pending[0]}"
    fresh = target.with_name(f"{target.name}.new")
    fresh.unlink(missing_ok=True)
    await engine_copy.fill_sqlite(location, fresh, progress=progress)
    os.replace(fresh, target)  # noqa: PTH105 - the same as Path.replace
    return target


async def copy_database(place: GatewayPlace, url: str, progress: Progress) -> dict[str, TableSum]:
    """Copy the database of a stopped gateway to one of the other engine, and return the sums of its tables.

    Raises conflict for a target that has something, and while a daemon uses either database.
    """
    source, target = place.location, parse(url)
    if source.is_sqlite == target.is_sqlite:
        raise GatewayError(
            ErrorKind.INVALID_REQUEST,
            "cannot copy the database: source and target are of one engine; use gatewayctl backup",
            param="to",
        )
    with lock_folder(place.data_dir):
        refuse_interrupted(place.data_dir)
        async with Database.open(source) as database:
            await database.own()
            migrate.check(await migrate.read_status(database))
            if target.path is not None:
                target.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                return dict(await engine_copy.fill_sqlite(source, target.path, progress=progress))
            if source.path is None:
                raise RuntimeError("one of both is a file")
            async with Database.open(target) as other:
                await other.own()
                return dict(
                    await engine_copy.fill_postgres(source.path, target, replace=False, progress=progress)
                )

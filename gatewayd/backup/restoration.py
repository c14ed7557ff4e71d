"""Restoring of a backup: everything is extracted and compared first, then the state is replaced at once.

From the first change to the last a journal stands in the state directory; a daemon does not start beside it,
and another restore begins anew. What was there before is moved to a directory of its own.
"""

import asyncio
import contextlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

from gatewayd import ids
from gatewayd.backup.archive import DATABASE, PLUGINS, SECRETS, SETTINGS, STATE, ArchiveReader
from gatewayd.backup.creation import check_free
from gatewayd.backup.inventory import check_extracted, check_version
from gatewayd.backup.manifest import BackupManifest
from gatewayd.backup.places import RESTORED, GatewayPlace
from gatewayd.backup.secret_bundle import SecretBundle, open_bundle
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.fsync import sync_to_disk
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import DatabaseLocation
from gatewayd.storage.engine.lock import JOURNAL, FileLock, lock_copying, lock_folder
from gatewayd.storage.engine.migrate import read_status
from gatewayd.storage.transfer import engine_copy

SCRATCH: Final = ".restore-new"
MAX_SEALED_BYTES: Final = 64 << 20

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RestoreWishes:
    """Whether state that is there may be replaced, and the passphrase of the secrets, "" to leave them."""

    replace: bool = False
    passphrase: str = ""


@dataclass(frozen=True, slots=True)
class RestoredBackup:
    """A backup that was restored: what its database lacks, and where the former state and settings are.

    `former` is None if there was no state.
    """

    manifest: BackupManifest
    pending: Sequence[str]
    former: Path | None
    beside: Path
    secrets: Sequence[str]


def restore_backup(
    place: GatewayPlace, file: BinaryIO, where: str, wishes: RestoreWishes, progress: Progress
) -> RestoredBackup:
    """Replace the state of a stopped gateway by that of a backup.

    Raises conflict for a running daemon, and for state that is there unless `wishes.replace` is set or an
    interrupted restore left it; invalid_request for a damaged backup. Nothing is changed then.
    """
    reader = ArchiveReader(file, where)
    pending = check_version(reader.manifest, where)
    with lock_folder(place.data_dir), lock_copying(place.data_dir):
        _refuse_state(place, wishes)
        new = place.data_dir / SCRATCH
        shutil.rmtree(new, ignore_errors=True)
        check_free(place.data_dir, 2 * reader.manifest.bytes, "restore the backup")
        try:
            new.mkdir(mode=0o700)
            progress("extracting")
            reader.extract(new)
            check_extracted(new, reader.manifest, where)
            secrets = _open_secrets(new, wishes)
            return asyncio.run(
                _StateSwap(place, new, progress).run(reader.manifest, secrets, pending, wishes)
            )
        finally:
            shutil.rmtree(new, ignore_errors=True)


def _refuse_state(place: GatewayPlace, wishes: RestoreWishes) -> None:
    if wishes.replace or (place.data_dir / JOURNAL).exists():
        return
    found = list(place.own_names())
    database = place.location.path
    if database is not None:
        found += [database.name] if database.exists() else []
    elif asyncio.run(_has_tables(place.location)):
        found.append(place.location.address)
    if found:
        raise GatewayError(
            ErrorKind.CONFLICT,
            f"cannot restore the backup: the gateway has state ({found[0]}); add --replace to move it away",
        )


async def _has_tables(location: DatabaseLocation) -> bool:
    async with Database.open(location) as database:
        status = await read_status(database)
    return bool(status.tables) and not status.is_incomplete


def _open_secrets(new: Path, wishes: RestoreWishes) -> SecretBundle:
    sealed = new / SECRETS
    if not wishes.passphrase:
        return SecretBundle()
    if not sealed.is_file():
        raise GatewayError(ErrorKind.INVALID_REQUEST, "cannot restore the secrets: the backup has none")
    if sealed.stat().st_size > MAX_SEALED_BYTES:
        raise GatewayError(ErrorKind.INVALID_REQUEST, "cannot restore the secrets: they are too long")
    return open_bundle(sealed.read_bytes(), wishes.passphrase)


class _StateSwap:
    """The exchange of the state for an extracted one."""

    def __init__(self, place: GatewayPlace, new: Path, progress: Progress) -> None:
        self._place = place
        self._new = new
        self._progress = progress
        self._former = _free_folder(place.data_dir)

    async def run(
        self, manifest: BackupManifest, secrets: SecretBundle, pending: Sequence[str], wishes: RestoreWishes
    ) -> RestoredBackup:
        """Exchange everything; interrupted, it is begun anew by the next restore."""
        place = self._place
        async with contextlib.AsyncExitStack() as stack:
            if place.location.path is None:
                database = await stack.enter_async_context(Database.open(place.location))
                await database.own()
                await self._keep_former_rows(database)
            else:
                place.location.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                lock = FileLock.of_database(place.location.path)
                lock.acquire()
                stack.callback(lock.release)
            self._write_journal()
            beside = self._lay_beside(secrets)
            self._swap_files(secrets)
            await self._swap_database(wishes)
            (place.data_dir / JOURNAL).unlink()
            sync_to_disk(place.data_dir)
        return RestoredBackup(
            manifest,
            pending,
            self._former if self._former.exists() else None,
            beside,
            sorted((*secrets.files, *secrets.settings)),
        )

    async def _keep_former_rows(self, database: Database) -> None:
        """Copy the rows of PostgreSQL that are about to be replaced."""
        status = await read_status(database)
        if status.tables and not status.is_incomplete:
            self._progress("keeping the former database")
            self._former.mkdir(mode=0o700)
            await engine_copy.fill_sqlite(
                self._place.location, self._former / DATABASE, progress=self._progress
            )

    def _write_journal(self) -> None:
        path = self._place.data_dir / JOURNAL
        path.write_text(json.dumps({"former": self._former.name}) + "\n")
        sync_to_disk(path)
        sync_to_disk(path.parent)

    def _lay_beside(self, secrets: SecretBundle) -> Path:
        """Write what belongs to places that root owns into a folder, for the operator to put there."""
        beside = self._place.data_dir / RESTORED
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(mode=0o700)
        for name in (SETTINGS, PLUGINS):
            source = self._new / name
            if source.is_dir():
                source.rename(beside / name.rstrip("/"))
        for folder, files in (
            (SETTINGS, secrets.configuration),
            ("credentials", {name: value.encode() for name, value in secrets.settings.items()}),
        ):
            (beside / folder).mkdir(mode=0o700, exist_ok=True)
            for name, data in files.items():
                (beside / folder / name).parent.mkdir(mode=0o700, exist_ok=True)
                _write_secret(beside / folder / name, data)
        return beside

    def _swap_files(self, secrets: SecretBundle) -> None:
        self._progress("replacing the files")
        data_dir = self._place.data_dir
        for name in self._place.own_names():
            self._move_away(data_dir / name)
        new = self._new / STATE
        for path in sorted(new.iterdir()) if new.is_dir() else ():
            # A name that no backup has as a part of the state: locks, the database, secrets, backups.
            if not self._place.is_apart(data_dir / path.name):
                path.rename(data_dir / path.name)
        self._swap_secrets(secrets)
        # Graphs of another database would be found out, but only one by one.
        shutil.rmtree(data_dir / "vectors", ignore_errors=True)
        sync_to_disk(data_dir)

    def _swap_secrets(self, secrets: SecretBundle) -> None:
        """Write the files of secrets; one that the backup had not would open the restored state to others."""
        for path in self._place.secret_files if secrets.files else ():
            if path.name in secrets.files:
                # Killed in between, there is the one or the other: a daemon without any makes a new one.
                part = path.with_name(f"{path.name}.part")
                _write_secret(part, secrets.files[path.name])
                if path.exists():
                    self._former.mkdir(mode=0o700, exist_ok=True)
                    shutil.copy2(path, self._former / path.name)
                part.replace(path)
            elif path.parent == self._place.data_dir:
                self._move_away(path)

    async def _swap_database(self, wishes: RestoreWishes) -> None:
        self._progress("replacing the database")
        path = self._place.location.path
        if path is None:
            await engine_copy.fill_postgres(
                self._new / DATABASE, self._place.location, replace=True, progress=self._progress
            )
            return
        for each in sorted(path.parent.glob(f"{path.name}*")):
            if each.name in {path.name, f"{path.name}-wal", f"{path.name}-shm", f"{path.name}-journal"}:
                self._move_away(each)
        part = path.with_name(f"{path.name}.part")
        shutil.move(self._new / DATABASE, part)
        # Between file systems the move was a copy.
        sync_to_disk(part)
        part.rename(path)
        sync_to_disk(path.parent)

    def _move_away(self, path: Path) -> None:
        if os.path.lexists(path):
            self._former.mkdir(mode=0o700, exist_ok=True)
            shutil.move(path, self._former / path.name)


def _write_secret(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
        file.write(data)
        file.flush()
        os.fsync(descriptor)


def _free_folder(parent: Path) -> Path:
    """Return a name for the former state that is not taken; it has the time."""
    now = datetime.fromtimestamp(ids.now(), UTC).strftime("replaced-%Y%m%dT%H%M%SZ")
    path, number = parent / now, 1
    while path.exists():
        number += 1
        path = parent / f"{now}-{number}"
    return path

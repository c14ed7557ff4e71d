"""A new backup: one state of the database, the files that belong to it, settings, and perhaps the secrets."""

import asyncio
import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from gatewayd import __version__, ids
from gatewayd.backup.archive import DATABASE, SECRETS, SETTINGS, ArchiveWriter, can_store
from gatewayd.backup.file_links import FileLinks, remove_leftovers
from gatewayd.backup.manifest import FORMAT, TIME_FORMAT, BackupManifest, entries, noted
from gatewayd.backup.places import GatewayPlace
from gatewayd.backup.secret_bundle import check_passphrase, collect_secrets, without_secrets
from gatewayd.errors import ErrorKind, GatewayError, system_reason
from gatewayd.fsync import sync_to_disk
from gatewayd.storage.engine.lock import FileLock, lock_copying, refuse_interrupted
from gatewayd.storage.transfer import engine_copy, sqlite_files
from gatewayd.storage.transfer.row_sums import TableSum

Progress = Callable[[str], None]

BEGIN: Final = "gatewayd-"
SUFFIX: Final = ".tar"
PART: Final = ".part"
LOCK: Final = "backup.lock"
TRIES: Final = 5
"""How often the state of the database is chosen anew because a file of it has gone meanwhile."""

SPARE_BYTES: Final = 64 << 20
"""Room on the disk that a backup leaves, of that which it needs not."""


@dataclass(frozen=True, slots=True)
class CreatedBackup:
    """A backup that was made."""

    path: Path
    size: int
    manifest: BackupManifest


@dataclass(slots=True)
class _Contents:
    """What was found for a backup: sums of the tables, names of files that are missing or were left out."""

    sums: Mapping[str, TableSum] = field(default_factory=dict)
    missing: frozenset[str] = frozenset()
    left_out: list[str] = field(default_factory=list)


def create_backup(place: GatewayPlace, passphrase: str, progress: Progress) -> CreatedBackup:
    """Make a backup in `backup_dir` while the daemon works, and return it; without passphrase no secrets.

    It has every change that was committed before this is called. Raises conflict while another backup is
    made or the state is replaced, not_configured for a state that is only half replaced, and unavailable for
    a full disk; nothing is left then.
    """
    if passphrase:
        check_passphrase(passphrase)
    with os_errors("write the backup"), exclusive(place.backup_dir), contextlib.ExitStack() as stack:
        stack.enter_context(lock_copying(place.data_dir))
        refuse_interrupted(place.data_dir)
        remove_leftovers(place.data_dir)
        for leftover in place.backup_dir.glob(f"{BEGIN}*{SUFFIX}{PART}*"):
            leftover.unlink()
        _check_room(place)
        now = datetime.fromtimestamp(ids.now(), UTC)
        path = _free_path(place.backup_dir, now)
        part, database = path.with_name(path.name + PART), path.with_name(f"{path.name}{PART}-database")
        links = FileLinks(place)
        stack.callback(links.remove)
        for each in (part, database):
            stack.callback(each.unlink, missing_ok=True)
        contents = _copy_database(place, links, database, progress)
        manifest = _write(place, part, database, links, contents, passphrase, now, progress)
        part.rename(path)
        sync_to_disk(path.parent)
    return CreatedBackup(path, path.stat().st_size, manifest)


@contextlib.contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Keep other backups away from a folder, which is made if need be; conflict if one is under way."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK, f"the backups in {folder}", param="backup_dir")
    lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _copy_database(place: GatewayPlace, links: FileLinks, target: Path, progress: Progress) -> _Contents:
    """Copy one state of the database whose files are all linked."""
    for left in reversed(range(TRIES)):
        contents = _Contents()
        # Files that are there before and after the state is chosen: those of the state are among them.
        links.update()

        def look(keys: frozenset[str], contents: _Contents = contents, left: int = left) -> None:
            links.update()
            contents.missing = links.missing(keys)
            if contents.missing and left and place.has_files:
                raise _ChangedMeanwhile

        try:
            _copy_state(place, target, look, progress)
        except _ChangedMeanwhile:
            continue
        progress("adding up the tables")
        contents.sums = sqlite_files.table_sums(target)
        return contents
    raise RuntimeError("the last try raises or returns")


def _copy_state(
    place: GatewayPlace, target: Path, look: Callable[[frozenset[str]], None], progress: Progress
) -> None:
    target.unlink(missing_ok=True)
    progress("copying the database")
    if place.location.path is None:
        asyncio.run(engine_copy.fill_sqlite(place.location, target, progress=progress, on_snapshot=look))
        return
    with sqlite_files.open_snapshot(place.location.path) as snapshot:
        look(snapshot.blob_keys())
        snapshot.write(target)


def _write(
    place: GatewayPlace,
    part: Path,
    database: Path,
    links: FileLinks,
    contents: _Contents,
    passphrase: str,
    now: datetime,
    progress: Progress,
) -> BackupManifest:
    with open(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "r+b") as file:  # noqa: PTH123
        writer = ArchiveWriter(file)
        writer.add_file(DATABASE, database)
        progress("copying the files")
        for name, path in (*links.files(), *place.plugin_files()):
            _add_file(writer, name, path, contents)
        for name, path in sorted(place.settings_files.items()):
            _add_settings(writer, SETTINGS + name, path, place, contents)
        if passphrase:
            writer.add_bytes(SECRETS, collect_secrets(place).seal(passphrase))
        return writer.finish(
            lambda count, size, checksums: BackupManifest(
                format=FORMAT,
                version=__version__,
                created_at=now.strftime(TIME_FORMAT),
                engine="sqlite" if place.location.is_sqlite else "postgresql",
                migrations=tuple(sqlite_files.applied_migrations(database)),
                tables=entries(contents.sums),
                files=count - 1 - bool(passphrase),
                bytes=size,
                checksums=checksums,
                has_secrets=bool(passphrase),
                left_out=noted(sorted(contents.left_out)),
                missing=noted(sorted(contents.missing)),
            )
        )


def _add_file(writer: ArchiveWriter, name: str, path: Path, contents: _Contents) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    # A name that no archive of ours can hold, or a link, which a restore would not follow either.
    if not stat.S_ISREG(found.st_mode) or not can_store(name, found.st_size):
        contents.left_out.append(name.encode("utf-8", "replace").decode()[:200])
    elif not writer.add_file(name, path) and path.exists():
        contents.left_out.append(name)


def _add_settings(
    writer: ArchiveWriter, name: str, path: Path, place: GatewayPlace, contents: _Contents
) -> None:
    text = without_secrets(path.read_text(), place.secret_values)
    if text is None or not can_store(name, len(text)):
        contents.left_out.append(name)
    else:
        writer.add_bytes(name, text.encode())


def _check_room(place: GatewayPlace) -> None:
    """Raise unavailable if the disk has too little room: the database is there twice for a while."""
    files = (*place.state_files(), *place.plugin_files())
    size = sum(path.lstat().st_size for _, path in files if os.path.lexists(path))
    database = place.location.path
    if database is not None and database.exists():
        size += 2 * database.stat().st_size
    check_free(place.backup_dir, size, "write the backup")


def check_free(folder: Path, size: int, what: str) -> None:
    """Raise unavailable unless a disk has room for `size` bytes."""
    free = shutil.disk_usage(folder).free
    if free < size + SPARE_BYTES:
        raise GatewayError(
            ErrorKind.UNAVAILABLE,
            f"cannot {what}: the disk of {folder} has room for {free >> 20} MiB, and about"
            f" {(size + SPARE_BYTES) >> 20} MiB are needed",
        )


def _free_path(folder: Path, now: datetime) -> Path:
    """Return a path that is not taken; the name has the time."""
    name = now.strftime(f"{BEGIN}%Y%m%dT%H%M%SZ")
    number = 1
    path = folder / f"{name}{SUFFIX}"
    while path.exists():
        number += 1
        path = folder / f"{name}-{number}{SUFFIX}"
    return path


@contextlib.contextmanager
def os_errors(what: str) -> Iterator[None]:
    """Raise unavailable for an error of the operating system, such as a full disk."""
    try:
        yield
    except OSError as error:
        reason = system_reason(error)
        raise GatewayError(ErrorKind.UNAVAILABLE, f"cannot {what}: {reason}") from error


class _ChangedMeanwhile(Exception):  # noqa: N818 - control flow, not a failure
    """A file of the chosen state of the database is gone."""

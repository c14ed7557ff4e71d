"""What there is of backups, and whether one is whole: by restoring it into a scratch directory."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

from gatewayd import ids
from gatewayd.backup.archive import DATABASE, STATE, ArchiveReader
from gatewayd.backup.creation import SUFFIX, check_free, exclusive
from gatewayd.backup.manifest import TIME_FORMAT, BackupManifest
from gatewayd.backup.places import BLOBS
from gatewayd.backup.retention import RetentionRule, kept
from gatewayd.errors import ErrorKind, GatewayError, system_reason
from gatewayd.storage.engine.migrate import known_migrations
from gatewayd.storage.transfer import sqlite_files
from gatewayd.storage.transfer.row_sums import differences

SCRATCH: Final = ".verify-"
MAX_AHEAD_SECONDS: Final = 86400


@dataclass(frozen=True, slots=True)
class FoundBackup:
    """A backup in the directory; without a manifest it is not complete, or damaged, and `problem` says so."""

    path: Path
    size: int
    manifest: BackupManifest | None
    problem: str = ""

    @property
    def made_at(self) -> datetime:
        """When it was made."""
        if self.manifest is None:
            return datetime.fromtimestamp(self.path.stat().st_mtime, UTC)
        return datetime.strptime(self.manifest.created_at, TIME_FORMAT).replace(tzinfo=UTC)


def list_backups(folder: Path) -> Sequence[FoundBackup]:
    """Return the backups in a directory, newest first."""
    found = [_look(path) for path in folder.glob(f"*{SUFFIX}") if path.is_file()]
    return sorted(found, key=lambda each: (each.made_at, each.path.stat().st_mtime_ns), reverse=True)


def prune_backups(folder: Path, rule: RetentionRule, *, dry_run: bool) -> Sequence[tuple[FoundBackup, bool]]:
    """Remove the backups that a rule does not keep; return all, each with whether it is kept.

    What cannot be read is kept, and what was made by a clock that was ahead: it would take the place of newer
    ones. Raises invalid_request for a rule that keeps nothing.
    """
    if rule.is_empty:
        raise GatewayError(
            ErrorKind.INVALID_REQUEST,
            "cannot prune the backups: say how many are kept, for example --keep-daily 7",
        )
    with exclusive(folder):
        every = list_backups(folder)
        now = datetime.fromtimestamp(ids.now() + MAX_AHEAD_SECONDS, UTC)
        sound = [each for each in every if each.manifest is not None and each.made_at <= now]
        keep = {sound[at].path for at in kept([each.made_at for each in sound], rule)}
        decided = [(each, each not in sound or each.path in keep) for each in every]
        for each, is_kept in decided:
            if not is_kept and not dry_run:
                each.path.unlink(missing_ok=True)
    return decided


def find_backup(folder: Path, name: str) -> Path:
    """Return the file of a backup: a path, a name in the directory, or the newest one for `latest`."""
    if name == "latest":
        complete = [each.path for each in list_backups(folder) if each.manifest is not None]
        if not complete:
            raise GatewayError(ErrorKind.NOT_FOUND, f"cannot find a backup: there is none in {folder}")
        return complete[0]
    choices = [Path(name), folder / name, folder / f"{name}{SUFFIX}"]
    found = next((path for path in choices if path.is_file()), None)
    if found is None:
        raise GatewayError(ErrorKind.NOT_FOUND, f"cannot find the backup {name}")
    return found


def verify_backup(file: BinaryIO, where: str, scratch: Path) -> BackupManifest:
    """Restore a backup into a new directory below `scratch`, compare everything, and return its manifest.

    Raises invalid_request for whatever is not as it was written.
    """
    with _scratch(scratch) as folder:
        reader = ArchiveReader(file, where)
        check_free(scratch, reader.manifest.bytes, "verify the backup")
        reader.extract(folder)
        check_extracted(folder, reader.manifest, where)
        return reader.manifest


def check_extracted(folder: Path, manifest: BackupManifest, where: str) -> None:
    """Raise invalid_request unless an extracted backup has the rows and files of its manifest."""
    database = folder / DATABASE
    if not database.is_file():
        raise _refused(where, "it has no database")
    problems = [
        *sqlite_files.find_damage(database),
        *differences(manifest.sums(), sqlite_files.table_sums(database)),
    ]
    if problems:
        raise _refused(where, problems[0])
    with sqlite_files.open_snapshot(database) as snapshot:
        files = snapshot.blob_keys()
    blobs = {each.name for each in (folder / STATE / BLOBS).glob("*/*")}
    lost = files - blobs
    if not manifest.is_missing_known(lost):
        raise _refused(where, f"the file {min(lost - set(manifest.missing))} is missing")


def check_version(manifest: BackupManifest, where: str) -> Sequence[str]:
    """Return the migrations that a restored database would lack; not_configured for a newer schema."""
    known = known_migrations()
    applied = manifest.migrations
    if list(applied) != list(known[: len(applied)]):
        raise GatewayError(
            ErrorKind.NOT_CONFIGURED,
            f"cannot restore the backup {where}: version {manifest.version[:40]} made it, and its schema"
            " is newer than this version's or of another branch; install that version",
            code="backup_newer",
        )
    return known[len(applied) :]


@contextlib.contextmanager
def _scratch(parent: Path) -> Iterator[Path]:
    """Yield a new folder, which is removed; so are those of runs that were killed."""
    for leftover in parent.glob(f"{SCRATCH}*"):
        with contextlib.suppress(OSError), _locked(leftover):
            shutil.rmtree(leftover, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=SCRATCH, dir=parent))
    try:
        with _locked(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder while the process lives; raises OSError if another one has."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _look(path: Path) -> FoundBackup:
    size = path.stat().st_size
    try:
        with path.open("rb") as file:
            return FoundBackup(path, size, ArchiveReader(file, path.name).manifest)
    except GatewayError as error:
        return FoundBackup(path, size, None, error.message)
    except OSError as error:
        return FoundBackup(path, size, None, system_reason(error))


def _refused(where: str, reason: str) -> GatewayError:
    return GatewayError(ErrorKind.INVALID_REQUEST, f"cannot trust the backup {where}: {reason}")

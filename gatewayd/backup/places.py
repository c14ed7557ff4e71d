"""Where the state of a gateway is, and what of it goes into a backup."""

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gatewayd.backup.archive import PLUGINS, STATE
from gatewayd.errors import ErrorKind, GatewayError, system_reason
from gatewayd.storage.engine.location import DatabaseLocation

BACKUPS_FOLDER: Final = "backups"
BLOBS: Final = "files"
UNCHANGING: Final = (BLOBS, "batches/files")
"""Folders of the state whose files never change, only come and go."""

INCOMING: Final = frozenset(f"{STATE}{folder}/incoming" for folder in UNCHANGING)
"""Folders of files that are not complete, by their names in an archive."""

DERIVED: Final = frozenset({"vectors", "models", "readers", "copies"})
"""Folders of the state that the daemon makes again."""

SIGNING_FILE: Final = "secret-key"
RESTORED: Final = "restored"
_TEMPORARY: Final = re.compile(
    r".*\.part(?:-.*)?|.*\.lock|gatewayd\.pid|\.(?:backup|restore|verify)-.*|replaced-.*|restored"
    r"|restore-incomplete|lost\+found|postgresql\.(?:before|replaced)-.*"
)
_DATABASE_SUFFIXES: Final = re.compile(r"-wal|-shm|-journal|\.lock|\.before-.*|\.replaced-.*|\.part.*|")


@dataclass(frozen=True, slots=True)
class GatewayPlace:
    """The places of one gateway. `secrets` are the settings that are secret, by name, without empty ones.

    `settings_files` has the files of the configuration by their names beside the first one.
    `secret_values` has these and the secrets within tables, such as keys of providers; `secret_files` are the
    files of secrets in the state. `other_backup_dirs` are those that the setting or its default names while
    `backup_dir` is another. Without `has_files` the bytes of files are in a store of their own.
    """

    data_dir: Path
    backup_dir: Path
    location: DatabaseLocation
    plugins_dir: Path
    settings_files: Mapping[str, Path]
    secrets: Mapping[str, str]
    secret_values: frozenset[str]
    secret_files: frozenset[Path]
    other_backup_dirs: frozenset[Path] = frozenset()
    has_files: bool = True

    def state_files(self) -> Iterator[tuple[str, Path]]:
        """Yield files of the state by their names in an archive: no database, no secrets, nothing derived."""
        for entry in _entries(self.data_dir):
            if entry.name in DERIVED or self.is_apart(entry):
                continue
            yield from self._below(entry, STATE + entry.name)

    def plugin_files(self) -> Iterator[tuple[str, Path]]:
        """Yield the files of the directory of plugins by their names in an archive, unless it is state."""
        if self.plugins_dir.resolve().is_relative_to(self.data_dir.resolve()):
            return
        for entry in _entries(self.plugins_dir):
            yield from self._below(entry, PLUGINS + entry.name)

    def own_names(self) -> Sequence[str]:
        """Return the names in the state directory that a restore replaces, those of the database apart."""
        return [
            entry.name
            for entry in _entries(self.data_dir)
            if not _TEMPORARY.fullmatch(entry.name)
            and not self._has_backups(entry)
            and entry not in self.secret_files
            and not self.is_database_file(entry)
            and not _is_socket(entry)
        ]

    def is_database_file(self, path: Path) -> bool:
        """Return whether a file is the database, or belongs to it."""
        database = self.location.path
        if database is None or path.parent.resolve() != database.parent.resolve():
            return False
        prefix, rest = path.name[: len(database.name)], path.name[len(database.name) :]
        return prefix == database.name and _DATABASE_SUFFIXES.fullmatch(rest) is not None

    def is_apart(self, entry: Path) -> bool:
        """Return whether an entry of the state directory is no part of the state."""
        return (
            _TEMPORARY.fullmatch(entry.name) is not None
            or self._has_backups(entry)
            or entry in self.secret_files
            or self.is_database_file(entry)
        )

    def _has_backups(self, folder: Path) -> bool:
        return folder.resolve() in {each.resolve() for each in (self.backup_dir, *self.other_backup_dirs)}

    def _below(self, entry: Path, name: str) -> Iterator[tuple[str, Path]]:
        if entry in self.secret_files or name in INCOMING:
            return
        mode = entry.lstat().st_mode if os.path.lexists(entry) else 0
        if stat.S_ISDIR(mode) and not self._has_backups(entry):
            for child in _entries(entry):
                yield from self._below(child, f"{name}/{child.name}")
        elif (stat.S_ISREG(mode) and not entry.name.endswith(".part")) or stat.S_ISLNK(mode):
            yield name, entry


def _entries(folder: Path) -> Sequence[Path]:
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        reason = system_reason(error)
        raise GatewayError(ErrorKind.UNAVAILABLE, f"cannot read {folder}: {reason}") from error


def _is_socket(path: Path) -> bool:
    return stat.S_ISSOCK(path.lstat().st_mode) if os.path.lexists(path) else False

"""Checks of the state directory: its modes and owners, the secrets in it, and the disk below it."""

import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from stat import S_ISREG
from typing import Final

from gatewayd.doctor.findings import DoctorFinding

OTHERS: Final = 0o077
MIN_SECRET_CHARACTERS: Final = 32
"""Least length of a secret that signs sessions: 128 bits as hexadecimal text."""

MAX_ENTRIES: Final = 2000
LOW_SHARE: Final = 0.1
LOW_BYTES: Final = 5 << 30
"""Free space is low below both a tenth of the disk and 5 GiB, and gone below 256 MiB."""

FULL_BYTES: Final = 256 << 20


def check_folder(folder: Path) -> Iterator[DoctorFinding]:
    """Check the directory itself, and the modes and owners of the entries in it."""
    if not folder.is_dir():
        yield DoctorFinding(
            "state-missing",
            f"the state directory {folder} does not exist",
            f"install -d -m 700 {_quoted(folder)}",
        )
        return
    found = folder.stat()
    if found.st_mode & OTHERS:
        yield DoctorFinding(
            "state-open",
            f"others may enter the state directory {folder}",
            f"chmod 700 {_quoted(folder)}",
        )
    for entry in sorted(folder.iterdir())[:MAX_ENTRIES]:
        try:
            status = entry.lstat()
        except FileNotFoundError:
            continue
        if status.st_uid != found.st_uid:
            yield DoctorFinding(
                "state-owner",
                f"{entry} belongs to another user than the state directory, so that the daemon may not"
                " change it",
                f"chown -R -h --reference={_quoted(folder)} {_quoted(entry)}",
            )
        if S_ISREG(status.st_mode) and status.st_mode & OTHERS:
            yield DoctorFinding("file-open", f"others may read {entry}", f"chmod go= {_quoted(entry)}")


def check_secrets(paths: Sequence[Path]) -> Iterator[DoctorFinding]:
    """Check that files of secrets can be read by their owner and group only."""
    for path in paths:
        if path.is_file() and path.stat().st_mode & 0o007:
            yield DoctorFinding(
                "secret-open",
                f"every user of this machine may read the secret {path}",
                f"chmod o= {_quoted(path)}",
            )


RANDOM_TEXT: Final = "openssl rand -hex 32"


def file_command(path: Path) -> str:
    """Return the command that puts a new secret into its own file."""
    return f"{RANDOM_TEXT} > {_quoted(path)}"


def line_command(path: Path, line: int, setting: str) -> str:
    """Return the command that puts a new secret into the line of a configuration file that sets it."""
    return value_command(path, line, setting, f"$({RANDOM_TEXT})")


def value_command(path: Path, line: int, setting: str, value: str) -> str:
    """Return the command that puts a text into the line of a configuration file that sets it."""
    return f"""sed -i "{line}s/.*/{setting} = \\"{value}\\"/" {_quoted(path)}"""


def check_signing_secret(secret: str, origin: str, command: str) -> Iterator[DoctorFinding]:
    """Check the length of the secret that signs sessions.

    `origin` says where it comes from, and `command` puts a new one there.
    """
    if len(secret) < MIN_SECRET_CHARACTERS:
        yield DoctorFinding(
            "secret-short",
            f"the secret that signs sessions ({origin}) has {len(secret)} characters, less than"
            f" {MIN_SECRET_CHARACTERS}: a new one ends all sessions",
            command,
        )


def check_disk(folder: Path, *, free: int | None = None, total: int | None = None) -> Iterator[DoctorFinding]:
    """Check the free space below a directory; `free` and `total` are in bytes, measured if None."""
    if free is None or total is None:
        if not folder.is_dir():
            return
        usage = shutil.disk_usage(folder)
        free, total = usage.free, usage.total
    if free < FULL_BYTES:
        yield DoctorFinding(
            "disk-full", f"{free >> 20} MiB are free below {folder}: writes will fail", "gatewayctl gc"
        )
    elif free < LOW_BYTES and free < total * LOW_SHARE:
        yield DoctorFinding("disk-low", f"{free >> 20} MiB are free below {folder}", "gatewayctl gc")


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))

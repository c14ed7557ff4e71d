"""File of SCIM tokens: one or two words, one per line, the newest first."""

import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.fsync import sync_to_disk

MAX_TOKENS: Final = 2
MAX_FILE_BYTES: Final = 64 * 1024
PRIVATE_MODE: Final = 0o600


def read_tokens(path: Path) -> tuple[str, ...]:
    """Return the tokens of a file, () without a file.

    Raises not_configured, naming the file, if it cannot be read or has other content.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise _failed("read", path, _reason(error)) from error
    tokens = tuple(content.decode("ascii", "replace").split())
    if len(content) > MAX_FILE_BYTES or len(tokens) > MAX_TOKENS or not all(map(_is_word, tokens)):
        raise _failed("read", path, f"expected at most {MAX_TOKENS} words of ASCII characters, one per line")
    return tokens


def write_tokens(path: Path, tokens: Sequence[str], *, dry_run: bool = False) -> None:
    """Replace the content of a file atomically and durably; the file is private and keeps its owner.

    Raises not_configured, naming the file, on failure. After a failure or a dry run the old content stays.
    """
    try:
        target = path.resolve()
        part = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        try:
            _write_new(part, "".join(f"{token}\n" for token in tokens), target)
            if not dry_run:
                part.replace(target)
        finally:
            part.unlink(missing_ok=True)
        sync_to_disk(target.parent)
    except (OSError, RuntimeError) as error:
        raise _failed("write", path, _reason(error)) from error


def find_written_at(path: Path) -> int | None:
    """Return the modification time of the file in epoch seconds, None without a file."""
    try:
        return int(path.stat().st_mtime)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _failed("read", path, _reason(error)) from error


def _write_new(part: Path, text: str, target: Path) -> None:
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_MODE)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        if target.exists():
            owner = target.stat()
            if (owner.st_uid, owner.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(descriptor, owner.st_uid, owner.st_gid)
        file.write(text)
        file.flush()
        os.fsync(descriptor)


def _is_word(token: str) -> bool:
    return all("!" <= character <= "~" for character in token)


def _reason(error: OSError | RuntimeError) -> str:
    strerror = error.strerror if isinstance(error, OSError) else None
    return (strerror or str(error)).lower()


def _failed(verb: str, path: Path, reason: str) -> GatewayError:
    return GatewayError(
        ErrorKind.NOT_CONFIGURED,
        f"cannot {verb} the SCIM token file {path}: {reason}",
        param="scim_token_file",
    )

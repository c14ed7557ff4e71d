"""Values from files of their own: one value a file, for secrets above all."""

import stat
from pathlib import Path
from typing import Final

MAX_FILE_BYTES: Final = 64 * 1024


def read_value(path: Path) -> str:
    """Return the text of a small file without the line ends at its end.

    ValueError, whose text completes "cannot read FILE: ...", when there is no such text.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ValueError((error.strerror or str(error)).lower()) from error
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"it has more than {MAX_FILE_BYTES} bytes")
    try:
        return content.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8 text") from error


def exposure_warning(path: Path) -> str:
    """Return a warning when others than owner and group may read the file, else ""."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return f"cannot tell who may read {path}: {error.strerror}"
    if mode & stat.S_IROTH:
        return (
            f"{path} holds a secret and everybody may read it (mode {stat.S_IMODE(mode):04o}, should be 0640)"
        )
    return ""

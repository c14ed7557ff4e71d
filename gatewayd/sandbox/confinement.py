"""What processes are confined by that compute on foreign bytes, and what of it the kernel lacks."""

import mimetypes
import site
import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

from gatewayd.sandbox import landlock, seccomp

LANDLOCK: Final = "Landlock"
SECCOMP: Final = "seccomp"

PACKAGE: Final = Path(__file__).parents[1]
# Where the system has the libraries that modules are linked with, and what finds them.
LIBRARIES: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")
DEVICES: Final = ("/dev/null", "/dev/urandom", "/dev/random")


class SandboxMode(StrEnum):
    """How the processes are confined that read documents or run models."""

    # As far as the kernel can.
    AUTO = "auto"
    # Wholly, or the process ends.
    REQUIRE = "require"
    # Not at all.
    OFF = "off"


def missing_features() -> Sequence[str]:
    """Return what the kernel lacks, or does not permit: LANDLOCK, SECCOMP."""
    available = {LANDLOCK: landlock.version() > 0, SECCOMP: seccomp.is_available()}
    return [name for name, is_there in available.items() if not is_there]


def confine(readable: Sequence[Path], program: Path | None = None) -> Sequence[str]:
    """Take from this process all files but some and its own modules, the network and other processes, for
    good.

    With `program` it can execute that, and has the files that programs need in place of its own modules.
    Returns what could not be done: LANDLOCK, SECCOMP. To be called before a second thread begins.
    """
    failed = []
    try:
        if program is None:
            landlock.restrict([*readable, *_own_files()])
        else:
            # The loader, which is among the libraries, is executed too.
            landlock.restrict([*readable, *map(Path, DEVICES)], [program, *map(Path, LIBRARIES)])
    except OSError:
        failed.append(LANDLOCK)
    try:
        seccomp.restrict(can_execute=program is not None)
    except OSError:
        failed.append(SECCOMP)
    return failed


def apply_sandbox(sandbox: SandboxMode, readable: Sequence[Path], program: Path | None = None) -> None:
    """Confine this process as `confine` does, in the way that the settings say; it ends when that is too
    little."""
    if sandbox is SandboxMode.OFF:
        return
    failed = confine(readable, program)
    if failed and sandbox is SandboxMode.REQUIRE:
        sys.exit(f"cannot be confined: {' and '.join(failed)} failed")


def _own_files() -> Iterator[Path]:
    """Yield where the modules of this process are, which are imported when they are needed."""
    installed = {Path(folder) for folder in (*site.getsitepackages(), site.getusersitepackages())}
    for folder in map(Path, sys.path):
        # A copy of the source code may be among other things.
        if folder != PACKAGE.parent or folder in installed:
            yield folder
    yield PACKAGE
    yield Path(sys.base_prefix, "lib")
    yield from map(Path, (*LIBRARIES, *DEVICES, *mimetypes.knownfiles))

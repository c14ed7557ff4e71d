"""Confinement of processes that parse untrusted data: modes, missing kernel features, application."""

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
# The shared libraries of the system and the cache of the loader.
LIBRARIES: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")
DEVICES: Final = ("/dev/null", "/dev/urandom", "/dev/random")


class SandboxMode(StrEnum):
    """Confinement of processes that extract documents or run models; the setting `ingest_sandbox`."""

    # With the features that the kernel has.
    AUTO = "auto"
    # With both features, or the process exits.
    REQUIRE = "require"
    # Without confinement.
    OFF = "off"


def missing_features() -> Sequence[str]:
    """Return the features that the kernel lacks or does not permit: LANDLOCK, SECCOMP."""
    available = {LANDLOCK: landlock.version() > 0, SECCOMP: seccomp.is_available()}
    return [name for name, is_there in available.items() if not is_there]


def confine(readable: Sequence[Path], program: Path | None = None) -> Sequence[str]:
    """Deny this process the network, other processes, and all files except `readable` and its own modules.

    With `program` it can execute that file and read the shared libraries instead of its own modules. Returns
    the features that failed: LANDLOCK, SECCOMP. This is permanent; call it before a second thread starts.
    """
    failed = []
    try:
        if program is None:
            landlock.restrict([*readable, *_own_files()])
        else:
            # The loader, one of the libraries, is executed too.
            landlock.restrict([*readable, *map(Path, DEVICES)], [program, *map(Path, LIBRARIES)])
    except OSError:
        failed.append(LANDLOCK)
    try:
        seccomp.restrict(can_execute=program is not None)
    except OSError:
        failed.append(SECCOMP)
    return failed


def apply_sandbox(sandbox: SandboxMode, readable: Sequence[Path], program: Path | None = None) -> None:
    """Confine this process in the mode of the setting; exit if the mode requires more than is possible."""
    if sandbox is SandboxMode.OFF:
        return
    failed = confine(readable, program)
    if failed and sandbox is SandboxMode.REQUIRE:
        sys.exit(f"cannot confine the process: {' and '.join(failed)} failed")


def _own_files() -> Iterator[Path]:
    """Yield the directories and files from which this process imports modules later."""
    installed = {Path(folder) for folder in (*site.getsitepackages(), site.getusersitepackages())}
    for folder in map(Path, sys.path):
        # The parent directory of a source tree may contain other files.
        if folder != PACKAGE.parent or folder in installed:
            yield folder
    yield PACKAGE
    yield Path(sys.base_prefix, "lib")
    yield from map(Path, (*LIBRARIES, *DEVICES, *mimetypes.knownfiles))

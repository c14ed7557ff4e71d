"""Landlock rules for this process: the files that it can open, and its connections (landlock(7))."""

import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from gatewayd.sandbox.kernel import call_kernel, set_no_new_privileges

# System call numbers, which are the same on all architectures.
CREATE_RULESET: Final = 444
ADD_RULE: Final = 445
RESTRICT_SELF: Final = 446

# linux/landlock.h
GET_VERSION: Final = 1
PATH_BENEATH: Final = 1
EXECUTE: Final = 1 << 0
READ_FILE: Final = 1 << 2
READ_DIR: Final = 1 << 3
# Number of file access rights in each version of the interface.
RIGHTS: Final = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
# First versions with rights for TCP, and with scopes for signals and abstract sockets.
NETWORK_VERSION: Final = 4
NETWORK_RIGHTS: Final = 0b11
SCOPE_VERSION: Final = 6
SCOPES: Final = 0b11


def version() -> int:
    """Return the version of the kernel's interface, 0 if it is missing or not permitted."""
    try:
        return call_kernel(CREATE_RULESET, None, 0, GET_VERSION)
    except OSError:
        return 0


def restrict(readable: Iterable[Path], executable: Iterable[Path] = ()) -> None:
    """Permit this process to read only some files and directories with their contents, permanently.

    `executable` files and directories can be read and executed. Writing, creating, removing and TCP
    connections are denied. Missing paths are ignored. Raises OSError if the kernel refuses. Call this
    before a second thread starts.
    """
    ruleset = call_kernel(CREATE_RULESET, *_attributes(version()), 0)
    try:
        for path in readable:
            _permit(ruleset, path, READ_FILE | READ_DIR)
        for path in executable:
            _permit(ruleset, path, READ_FILE | READ_DIR | EXECUTE)
        set_no_new_privileges()
        call_kernel(RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _attributes(interface: int) -> tuple[bytes, int]:
    """Return all rights of a version of the interface as `struct landlock_ruleset_attr`, and its size."""
    fields = [(1 << RIGHTS[min(interface, max(RIGHTS))]) - 1] if interface else []
    if interface >= NETWORK_VERSION:
        fields.append(NETWORK_RIGHTS)
    if interface >= SCOPE_VERSION:
        fields.append(SCOPES)
    packed = struct.pack(f"={len(fields)}Q", *fields)
    return packed, len(packed)


def _permit(ruleset: int, path: Path, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rights = rights if path.is_dir() else rights & ~READ_DIR
        rule = struct.pack("=Qi", rights, descriptor)
        call_kernel(ADD_RULE, ruleset, PATH_BENEATH, rule, 0)
    finally:
        os.close(descriptor)

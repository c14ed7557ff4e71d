"""Limits the files that this process can open, and what it can connect to (landlock(7))."""

import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from gatewayd.sandbox.kernel import call_kernel, set_no_new_privileges

# The same on all architectures.
CREATE_RULESET: Final = 444
ADD_RULE: Final = 445
RESTRICT_SELF: Final = 446

# linux/landlock.h
GET_VERSION: Final = 1
PATH_BENEATH: Final = 1
EXECUTE: Final = 1 << 0
READ_FILE: Final = 1 << 2
READ_DIR: Final = 1 << 3
# How many rights over files each version of the interface knows.
RIGHTS: Final = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
# From these versions on: TCP, and signals and abstract sockets of others.
NETWORK_VERSION: Final = 4
NETWORK_RIGHTS: Final = 0b11
SCOPE_VERSION: Final = 6
SCOPES: Final = 0b11


def version() -> int:
    """Return the version of the kernel's interface, 0 when it has none or does not permit it."""
    try:
        return call_kernel(CREATE_RULESET, None, 0, GET_VERSION)
    except OSError:
        return 0


def restrict(readable: Iterable[Path], executable: Iterable[Path] = ()) -> None:
    """Let this process open some files and what is below some folders, for reading; for good.

    Nothing can be written, made or removed, nothing but `executable` and what is below it, which can also be
    read, be executed, and nothing be connected to by TCP. What is not there
    is passed over. Raises OSError when the kernel refuses. To be called before a second thread begins.
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


def _attributes(known: int) -> tuple[bytes, int]:
    """Return all rights that a version of the interface knows, as `struct landlock_ruleset_attr`, and its
    size."""
    fields = [(1 << RIGHTS[min(known, max(RIGHTS))]) - 1] if known else []
    if known >= NETWORK_VERSION:
        fields.append(NETWORK_RIGHTS)
    if known >= SCOPE_VERSION:
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

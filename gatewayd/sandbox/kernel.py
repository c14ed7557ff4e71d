"""Calls of the kernel that Python has no names for."""

import ctypes
import os
from typing import Any, Final

PR_SET_NO_NEW_PRIVS: Final = 38


def call_prctl(option: int, *arguments: Any) -> int:
    """Return what prctl(2) returns; OSError when it fails."""
    # The last ones must be 0 for some options.
    padded = [*arguments, 0, 0, 0, 0][:4]
    return _checked(_libc().prctl(option, *padded))


def call_kernel(number: int, *arguments: Any) -> int:
    """Return what a system call of this number returns; OSError when it fails."""
    function = _libc().syscall
    function.restype = ctypes.c_long
    converted = (ctypes.c_long(each) if isinstance(each, int) else each for each in arguments)
    return _checked(function(ctypes.c_long(number), *converted))


def set_no_new_privileges() -> None:
    """Let no program that this process starts have more rights than it: what the kernel asks for first."""
    call_prctl(PR_SET_NO_NEW_PRIVS, 1)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)

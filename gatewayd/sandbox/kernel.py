"""System calls without a function in Python: prctl(2) and syscall(2)."""

import ctypes
import os
from typing import Any, Final

PR_SET_NO_NEW_PRIVS: Final = 38


def call_prctl(option: int, *arguments: Any) -> int:
    """Return the result of prctl(2); raises OSError."""
    # Some options require the unused arguments to be 0.
    padded = [*arguments, 0, 0, 0, 0][:4]
    return _checked(_libc().prctl(option, *padded))


def call_kernel(number: int, *arguments: Any) -> int:
    """Return the result of the system call `number`; raises OSError."""
    function = _libc().syscall
    function.restype = ctypes.c_long
    converted = (ctypes.c_long(each) if isinstance(each, int) else each for each in arguments)
    return _checked(function(ctypes.c_long(number), *converted))


def set_no_new_privileges() -> None:
    """Deny privilege gains through executed programs; Landlock and seccomp require it."""
    call_prctl(PR_SET_NO_NEW_PRIVS, 1)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)

"""Seccomp filter for this process (seccomp(2)): no network, no programs, no processes, no writing.

A call that is not allowed fails with EPERM. The filter is a BPF program that reads `struct seccomp_data`.
"""

import ctypes
import errno
import fcntl
import os
import platform
import struct
import termios
from collections.abc import Iterable, Iterator
from typing import Final

from gatewayd.sandbox import syscalls
from gatewayd.sandbox.kernel import call_prctl, set_no_new_privileges
from gatewayd.sandbox.syscalls import Architecture, Numbers

# linux/audit.h
AUDIT_ARCHITECTURES: Final = {Architecture.X86_64: 0xC000003E, Architecture.AARCH64: 0xC00000B7}
# The first number of the x32 system calls on x86_64.
X32: Final = 0x40000000

# linux/prctl.h, linux/seccomp.h
PR_SET_SECCOMP: Final = 22
SECCOMP_MODE_FILTER: Final = 2
KILL: Final = 0x80000000
ERRNO: Final = 0x00050000
ALLOW: Final = 0x7FFF0000
# Offsets of number, architecture and arguments in struct seccomp_data.
NUMBER: Final = 0
ARCHITECTURE: Final = 4
ARGUMENTS: Final = 16

# linux/bpf_common.h
LOAD: Final = 0x20
EQUAL: Final = 0x15
NOT_LESS: Final = 0x35
ANY_BIT: Final = 0x45
RETURN: Final = 0x06
INSTRUCTION_BYTES: Final = 8

CLONE_THREAD: Final = 0x00010000
TEMPORARY: Final = 0o20000000
WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | TEMPORARY
FCNTL_COMMANDS: Final = (
    *(fcntl.F_DUPFD, fcntl.F_DUPFD_CLOEXEC, fcntl.F_GETFD, fcntl.F_SETFD, fcntl.F_GETFL, fcntl.F_SETFL),
)
IOCTL_REQUESTS: Final = (termios.FIOCLEX, termios.FIONCLEX, termios.FIONBIO, termios.FIONREAD, termios.TCGETS)


class _Program(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def is_available() -> bool:
    """Return whether this process may set a filter and its architecture is supported.

    A container may refuse filters although the kernel has them. The test passes the address 0, which never
    sets a filter: the error is EFAULT if one could be set (seccomp(2)).
    """
    if _architecture() is None:
        return False
    try:
        call_prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, None)
    except OSError as error:
        return error.errno == errno.EFAULT
    return False


def restrict(*, can_execute: bool = False) -> None:
    """Limit the system calls of this process permanently; raises OSError if the kernel refuses.

    With `can_execute` it may execute another program, which has the same limits.

    Call this before a second thread starts: it limits only the calling thread and threads that it starts.
    """
    architecture = _architecture()
    if architecture is None:
        raise OSError(errno.ENOSYS, "the architecture is not supported")
    instructions = make_filter(architecture, os.getpid(), can_execute=can_execute)
    program = _Program(len(instructions) // INSTRUCTION_BYTES, instructions)
    set_no_new_privileges()
    call_prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program))


def make_filter(architecture: Architecture, pid: int, *, can_execute: bool = False) -> bytes:
    """Return the filter for the process `pid` in the format of the kernel."""
    allowed = (*syscalls.FREE.values(), *([syscalls.EXECVE] if can_execute else []))
    return b"".join(struct.pack("=HBBI", *each) for each in _instructions(architecture, pid, allowed))


Instruction = tuple[int, int, int, int]
"""Code, instructions to skip if true and if false, and operand."""


def _instructions(architecture: Architecture, pid: int, allowed: Iterable[Numbers]) -> Iterator[Instruction]:
    yield LOAD, 0, 0, ARCHITECTURE
    yield EQUAL, 1, 0, AUDIT_ARCHITECTURES[architecture]
    yield RETURN, 0, 0, KILL
    yield LOAD, 0, 0, NUMBER
    if architecture is Architecture.X86_64:
        yield NOT_LESS, 0, 1, X32
        yield _refusal(errno.EPERM)
    for numbers in allowed:
        yield from _case(numbers[architecture], [(RETURN, 0, 0, ALLOW)])
    for numbers, block in _conditions(pid):
        yield from _case(numbers[architecture], block)
    for numbers in syscalls.ABSENT.values():
        yield from _case(numbers[architecture], [_refusal(errno.ENOSYS)])
    yield _refusal(errno.EPERM)


def _conditions(pid: int) -> Iterator[tuple[Numbers, list[Instruction]]]:
    yield syscalls.OPEN, _without(1, WRITING)
    yield syscalls.OPENAT, _without(2, WRITING)
    # Threads, but no processes.
    yield (
        syscalls.CLONE,
        [_load(0), (ANY_BIT, 0, 1, CLONE_THREAD), (RETURN, 0, 0, ALLOW), _refusal(errno.EPERM)],
    )
    # abort(3) sends a signal to the process itself.
    yield syscalls.TGKILL, _among(0, [pid])
    yield syscalls.PRLIMIT64, _among(0, [0, pid])
    # The calling thread only: PRIO_PROCESS and the id 0.
    yield syscalls.SETPRIORITY, [*_only(0, os.PRIO_PROCESS), *_among(1, [0])]
    # Other commands could send a signal to another process.
    yield syscalls.FCNTL, _among(1, FCNTL_COMMANDS)
    yield syscalls.IOCTL, _among(1, IOCTL_REQUESTS)


def _case(number: int | None, block: list[Instruction]) -> Iterator[Instruction]:
    """Yield the instructions for one system call; `block` ends with a return."""
    if number is not None:
        yield EQUAL, 0, len(block), number
        yield from block


def _load(argument: int) -> Instruction:
    # The lower half comes first; all arguments that the filter checks have 32 bits.
    return LOAD, 0, 0, ARGUMENTS + 8 * argument


def _without(argument: int, bits: int) -> list[Instruction]:
    return [_load(argument), (ANY_BIT, 0, 1, bits), _refusal(errno.EPERM), (RETURN, 0, 0, ALLOW)]


def _among(argument: int, values: Iterable[int]) -> list[Instruction]:
    block = [_load(argument)]
    for value in values:
        block += [(EQUAL, 0, 1, value), (RETURN, 0, 0, ALLOW)]
    return [*block, _refusal(errno.EPERM)]


def _only(argument: int, value: int) -> list[Instruction]:
    """Return instructions that refuse the call unless an argument has a value."""
    return [_load(argument), (EQUAL, 1, 0, value), _refusal(errno.EPERM)]


def _refusal(number: int) -> Instruction:
    return RETURN, 0, 0, ERRNO | number


def _architecture() -> Architecture | None:
    """Return the architecture of this process, None if it has 32 bits or is not supported."""
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    return {"x86_64": Architecture.X86_64, "aarch64": Architecture.AARCH64}.get(platform.machine())

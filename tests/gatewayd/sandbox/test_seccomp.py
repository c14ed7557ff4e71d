"""The filter, run as the kernel runs it."""

import errno
import fcntl
import os
import struct

import pytest

from gatewayd.sandbox import seccomp, syscalls
from gatewayd.sandbox.seccomp import ALLOW, ERRNO, KILL
from gatewayd.sandbox.syscalls import Architecture, Numbers

PID = 4321
REFUSED = ERRNO | errno.EPERM
SOCKET: Numbers = (41, 198)
KILLING: Numbers = (62, 129)
PRCTL: Numbers = (157, 167)


def decided(program: bytes, data: bytes) -> int:
    """Return what a filter returns for `struct seccomp_data`."""
    instructions = list(struct.iter_unpack("=HBBI", program))
    place, accumulator = 0, 0
    while True:
        code, when_true, when_false, number = instructions[place]
        place += 1
        if code == seccomp.RETURN:
            return int(number)
        if code == seccomp.LOAD:
            (accumulator,) = struct.unpack_from("=I", data, number)
            continue
        is_true = {
            seccomp.EQUAL: accumulator == number,
            seccomp.NOT_LESS: accumulator >= number,
            seccomp.ANY_BIT: bool(accumulator & number),
        }[code]
        place += when_true if is_true else when_false


def action(architecture: Architecture, numbers: Numbers, *arguments: int) -> int:
    number = numbers[architecture]
    assert number is not None
    audit = seccomp.AUDIT_ARCHITECTURES[architecture]
    padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("=IIQ6Q", number, audit, 0, *padded)
    return decided(seccomp.make_filter(architecture, PID), data)


@pytest.mark.parametrize("architecture", Architecture)
def test_what_a_process_may_do_and_what_not(architecture: Architecture) -> None:
    thread = 0x3D0F00
    allowed: list[tuple[Numbers, tuple[int, ...]]] = [
        *((numbers, ()) for numbers in syscalls.FREE.values() if numbers[architecture] is not None),
        (syscalls.OPENAT, (0, 0, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)),
        (syscalls.CLONE, (thread,)),
        (syscalls.TGKILL, (PID, 7, 6)),
        (syscalls.PRLIMIT64, (0, 0)),
        (syscalls.SETPRIORITY, (os.PRIO_PROCESS, 0, 10)),
        (syscalls.FCNTL, (3, fcntl.F_SETFD, 1)),
        (syscalls.IOCTL, (3, 0x5451)),
    ]
    refused: list[tuple[Numbers, tuple[int, ...]]] = [
        *((numbers, ()) for numbers in (SOCKET, syscalls.EXECVE, KILLING, PRCTL)),
        *((syscalls.OPENAT, (0, 0, flag)) for flag in (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC)),
        (syscalls.OPENAT, (0, 0, os.O_TMPFILE)),
        (syscalls.CLONE, (17,)),
        (syscalls.TGKILL, (1, 1, 9)),
        (syscalls.PRLIMIT64, (1, 0)),
        (syscalls.SETPRIORITY, (os.PRIO_PROCESS, 1, 10)),
        (syscalls.SETPRIORITY, (os.PRIO_USER, 0, 10)),
        (syscalls.FCNTL, (3, fcntl.F_SETOWN, 1)),
        (syscalls.IOCTL, (0, 0x5412)),
    ]
    assert {case: action(architecture, case[0], *case[1]) for case in allowed} == dict.fromkeys(
        allowed, ALLOW
    )
    assert {case: action(architecture, case[0], *case[1]) for case in refused} == dict.fromkeys(
        refused, REFUSED
    )
    absent = [action(architecture, numbers) for numbers in syscalls.ABSENT.values()]
    assert set(absent) == {ERRNO | errno.ENOSYS}


def test_calls_of_other_conventions_are_refused() -> None:
    program = seccomp.make_filter(Architecture.X86_64, PID)
    x32 = struct.pack(
        "=IIQ6Q", seccomp.X32 | 0, seccomp.AUDIT_ARCHITECTURES[Architecture.X86_64], 0, *[0] * 6
    )
    assert decided(program, x32) == REFUSED
    # The numbers of 32 bits are others.
    i386 = struct.pack("=IIQ6Q", 3, 0x40000003, 0, *[0] * 6)
    assert decided(program, i386) == KILL


def test_an_architecture_whose_numbers_are_not_known_has_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seccomp.is_available()
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert not seccomp.is_available()
    with pytest.raises(OSError, match="not supported"):
        seccomp.restrict()


@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES, errno.EINVAL, errno.ENOSYS])
def test_a_container_that_refuses_filters_has_none(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refused(option: int, *_: object) -> int:
        # Whether a filter is set already may be asked all the same.
        if option == seccomp.PR_SET_SECCOMP:
            raise OSError(number, "refused")
        return 0

    monkeypatch.setattr(seccomp, "call_prctl", refused)
    assert not seccomp.is_available()

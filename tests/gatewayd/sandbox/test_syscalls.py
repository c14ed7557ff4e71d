import pytest

from gatewayd.sandbox import syscalls
from gatewayd.sandbox.syscalls import Architecture

CONDITIONAL = ("OPEN", "OPENAT", "CLONE", "TGKILL", "PRLIMIT64", "FCNTL", "IOCTL")


@pytest.mark.parametrize("architecture", Architecture)
def test_no_two_calls_have_one_number(architecture: Architecture) -> None:
    known = [*syscalls.FREE.values(), *syscalls.ABSENT.values()]
    known += [getattr(syscalls, name) for name in CONDITIONAL]
    numbers = [each[architecture] for each in known if each[architecture] is not None]
    assert len(numbers) == len(set(numbers)) > 80


def test_what_reaches_others_is_not_free() -> None:
    names = (
        "socket",
        "connect",
        "execve",
        "fork",
        "clone",
        "ptrace",
        "kill",
        "open",
        "openat",
        "prctl",
        "bpf",
    )
    assert set(names).isdisjoint(syscalls.FREE)

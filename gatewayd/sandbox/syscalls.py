"""System calls that a confined process may make (syscalls(2)).

The numbers come from `asm/unistd_64.h` and `asm-generic/unistd.h` of the kernel, in the order of
`Architecture`; None if an architecture has no such call.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

Numbers = tuple[int | None, int | None]


class Architecture(IntEnum):
    """Supported architectures; the value is the index of their numbers in the tables."""

    X86_64 = 0
    AARCH64 = 1


# The most frequent calls come first, because a filter is evaluated from its beginning.
FREE: Final[Mapping[str, Numbers]] = {
    "read": (0, 63),
    "write": (1, 64),
    "mmap": (9, 222),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "brk": (12, 214),
    "futex": (202, 98),
    "lseek": (8, 62),
    "fstat": (5, 80),
    "newfstatat": (262, 79),
    "stat": (4, None),
    "close": (3, 57),
    "pread64": (17, 67),
    "mprotect": (10, 226),
    "getrusage": (98, 165),
    "clock_gettime": (228, 113),
    "getdents64": (217, 61),
    # Open descriptors.
    "readv": (19, 65),
    "writev": (20, 66),
    "preadv": (295, 69),
    "close_range": (436, 436),
    "dup": (32, 23),
    "dup2": (33, None),
    "dup3": (292, 24),
    "pipe2": (293, 59),
    "eventfd2": (290, 19),
    "fadvise64": (221, 223),
    "poll": (7, None),
    "ppoll": (271, 73),
    "select": (23, None),
    "pselect6": (270, 72),
    "epoll_create1": (291, 20),
    "epoll_ctl": (233, 21),
    "epoll_wait": (232, None),
    "epoll_pwait": (281, 22),
    # Attributes of files.
    "lstat": (6, None),
    "statx": (332, 291),
    "statfs": (137, 43),
    "fstatfs": (138, 44),
    "access": (21, None),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "getcwd": (79, 17),
    # Memory and threads of the process.
    "mincore": (27, 232),
    "msync": (26, 227),
    "membarrier": (324, 283),
    "set_robust_list": (273, 99),
    "get_robust_list": (274, 100),
    "rseq": (334, 293),
    "set_tid_address": (218, 96),
    "arch_prctl": (158, None),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "sched_getparam": (143, 121),
    "sched_getscheduler": (145, 120),
    "getcpu": (309, 168),
    "exit": (60, 93),
    "exit_group": (231, 94),
    # Time and signals.
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101),
    "gettimeofday": (96, 169),
    "time": (201, None),
    "times": (100, 153),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "rt_sigpending": (127, 136),
    "rt_sigtimedwait": (128, 137),
    "sigaltstack": (131, 132),
    "restart_syscall": (219, 128),
    # Identity and limits of the process.
    "getpid": (39, 172),
    "getppid": (110, 173),
    "gettid": (186, 178),
    "getpgrp": (111, None),
    "getpgid": (121, 155),
    "getsid": (124, 156),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
    "getgroups": (115, 158),
    "getresuid": (118, 148),
    "getresgid": (120, 150),
    "getpriority": (140, 141),
    "getrlimit": (97, 163),
    "setrlimit": (160, 164),
    "uname": (63, 160),
    "sysinfo": (99, 179),
    "getrandom": (318, 278),
}

# Calls that are allowed with some arguments only.
OPEN: Final[Numbers] = (2, None)
OPENAT: Final[Numbers] = (257, 56)
CLONE: Final[Numbers] = (56, 220)
TGKILL: Final[Numbers] = (234, 131)
PRLIMIT64: Final[Numbers] = (302, 261)
SETPRIORITY: Final[Numbers] = (141, 140)
FCNTL: Final[Numbers] = (72, 25)
IOCTL: Final[Numbers] = (16, 29)
# Allowed if the process may execute another program.
EXECVE: Final[Numbers] = (59, 221)

# Calls that fail with ENOSYS, so that the C library uses an older call with arguments that a filter can read.
ABSENT: Final[Mapping[str, Numbers]] = {"clone3": (435, 435), "openat2": (437, 437)}

"""What is asked of the kernel; what it refuses then is in the tests of `confinement`."""

import errno
import struct
from pathlib import Path

import pytest

from gatewayd.sandbox import landlock


@pytest.mark.parametrize(
    ("known", "fields"),
    [
        (1, [0x1FFF]),
        (2, [0x3FFF]),
        (3, [0x7FFF]),
        (4, [0x7FFF, 3]),
        (5, [0xFFFF, 3]),
        (6, [0xFFFF, 3, 3]),
        (99, [0xFFFF, 3, 3]),
    ],
)
def test_every_right_is_taken_that_the_kernel_knows(known: int, fields: list[int]) -> None:
    assert landlock._attributes(known) == (struct.pack(f"={len(fields)}Q", *fields), 8 * len(fields))


def test_a_kernel_without_it_has_version_0(monkeypatch: pytest.MonkeyPatch) -> None:
    assert landlock.version() > 0

    def absent(*_: object) -> int:
        raise OSError(errno.ENOSYS, "no such call")

    monkeypatch.setattr(landlock, "call_kernel", absent)
    assert landlock.version() == 0
    with pytest.raises(OSError, match="no such call"):
        landlock.restrict([Path("/")])


def test_what_the_kernel_refuses_says_why_and_leaves_no_descriptor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    # Such a right there is none.
    monkeypatch.setattr(landlock, "READ_FILE", 1 << 60)
    with pytest.raises(OSError, match="Invalid argument"):
        landlock.restrict([tmp_path / "nothing", tmp_path])
    assert len(list(Path("/proc/self/fd").iterdir())) == before

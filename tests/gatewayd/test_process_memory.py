"""Tests for gatewayd.process_memory."""

import os
import subprocess
import sys
from pathlib import Path

from gatewayd.process_memory import MIN_GROWTH_BYTES, MemoryKeeper, resident_bytes, return_memory

PROGRAM = """
from pathlib import Path
from gatewayd.accounts.passwords import Passwords
from gatewayd.process_memory import return_large_blocks
import asyncio

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

async def main():
    passwords = Passwords()
    before = resident()
    for _ in range(3):
        await passwords.hash("correct horse battery")
    print(resident() - before)
    passwords.close()

assert return_large_blocks()
asyncio.run(main())
"""


def growth() -> int:
    """Return by how many bytes a process grows that hashes three passwords."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_the_memory_of_a_password_hash_goes_back() -> None:
    assert growth() < 8 * 1024 * 1024


def test_what_was_freed_is_given_back() -> None:
    kept = [bytes(100_000) for _ in range(1000)]
    end = kept[-1:]
    before = resident()
    del kept
    return_memory()
    assert resident() < before - 50_000_000
    assert len(end) == 1


async def test_memory_is_given_back_when_the_process_has_grown() -> None:
    held = [
        100 * MIN_GROWTH_BYTES,
        100 * MIN_GROWTH_BYTES + 1,
        99 * MIN_GROWTH_BYTES,
        100 * MIN_GROWTH_BYTES,
        95 * MIN_GROWTH_BYTES,
        95 * MIN_GROWTH_BYTES,
    ]
    given: list[int] = []
    forgotten: list[int] = []

    async def forget() -> None:
        forgotten.append(len(held))

    keeper = MemoryKeeper(forget, lambda: held.pop(0), lambda: given.append(len(held)))
    for _ in range(2):
        await keeper.look()
    assert given == []
    await keeper.look()
    assert given == [2]
    await keeper.look()
    assert given == forgotten == [2]


def test_the_resident_memory_is_that_of_the_kernel() -> None:
    assert abs(resident_bytes() - resident()) < 2**24


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

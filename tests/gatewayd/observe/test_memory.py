"""Tests for gatewayd.observe.memory."""

import subprocess
import sys

PROGRAM = """
from pathlib import Path
from gatewayd.accounts.passwords import Passwords
from gatewayd.observe.memory import return_large_blocks
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

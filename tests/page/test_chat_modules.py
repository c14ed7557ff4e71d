"""The pure modules of the chat, tested by Node."""

import shutil
import subprocess
from pathlib import Path

from tests.conftest import missing

TESTS = Path(__file__).parent / "chat_modules.mjs"


def test_the_pure_modules_of_the_chat() -> None:
    program = shutil.which("node")
    if program is None:
        missing("Node", "node is not on the PATH")
        raise AssertionError
    done = subprocess.run([program, "--test", str(TESTS)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr

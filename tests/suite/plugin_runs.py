"""Runs of test files with a plugin of pytest, each in an interpreter of its own."""

import os
import subprocess
import sys
from collections.abc import Sequence

from tests.conftest import missing
from tests.suite.source_tree import ROOT


def run_file(file: str, plugin: Sequence[str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a file with a plugin and its options."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "-x"]
    return subprocess.run(
        [*command, "-p", *plugin, "--timeout", "600", *arguments, file],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=1100,
        check=False,
    )


def check_passed(done: "subprocess.CompletedProcess[str]") -> None:
    """Fail with what was printed unless the file passed; skip as it did when a program is missing."""
    if " passed" not in done.stdout and "is not here" in done.stdout:
        missing("a program of the file", done.stdout[-500:])
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]

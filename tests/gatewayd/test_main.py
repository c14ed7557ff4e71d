"""Tests for gatewayd.__main__: the command as `python -m` and the script run it."""

import subprocess
import sys
from pathlib import Path

from gatewayd import __version__
from tests.fakes.daemons.daemon import environment, free_port, run_daemon

SAYS_ITS_COLLECTOR = """
import gc
from gatewayd import __main__, command
command.main = lambda: print(gc.isenabled(), gc.get_freeze_count() > 100_000)
__main__.main()
"""


def test_the_command_runs(state: Path) -> None:
    ran = run_daemon(state, "--version")
    assert (ran.returncode, ran.stdout) == (0, f"gatewayd {__version__}\n")


def test_what_is_loaded_is_out_of_the_collectors_way_and_the_collector_on(state: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SAYS_ITS_COLLECTOR],
        env=environment(state, free_port(), {}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.stdout == "True True\n", ran.stderr

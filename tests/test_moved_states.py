"""Test files of one daemon pass when its state was restored from a backup, or was in PostgreSQL meanwhile.

`pytest -m long tests/test_moved_states.py` runs each file both ways, in processes of their own. What the
fixtures of a file have filled is moved before its first test, and what a test leaves before the next start.
"""

from pathlib import Path

import pytest

from tests.fakes.moves.moved_daemon import MOVES
from tests.suite.plugin_runs import check_passed, run_file

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

FILES = (
    "tests/blackbox/test_access.py",
    "tests/blackbox/test_audit.py",
    "tests/blackbox/test_audit_rows.py",
    "tests/blackbox/test_credentials.py",
    "tests/blackbox/test_deactivation.py",
    "tests/blackbox/test_leaving.py",
    "tests/blackbox/test_limits.py",
    "tests/blackbox/test_model_access.py",
    "tests/blackbox/test_one_time_links.py",
    "tests/blackbox/test_replies.py",
    "tests/blackbox/test_resumable_streams.py",
    "tests/blackbox/test_scim_access.py",
    "tests/blackbox/test_stored_providers.py",
    "tests/blackbox/test_stored_responses.py",
    "tests/blackbox/test_usage.py",
)


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("file", FILES)
def test_a_file_passes_on_a_moved_state(file: str, move: str, tmp_path: Path) -> None:
    plugin = ("tests.fakes.moves.plugin", "--moved", move)
    done = run_file(file, plugin, f"--basetemp={tmp_path / 'b'}")
    check_passed(done)
    assert " states were moved" in done.stdout
    assert "\n0 states were moved" not in done.stdout

"""Test files of one daemon pass against a balancer in front of three nodes, each request on another node.

`pytest -m cluster tests/cluster/test_suites.py` runs each file in a process of its own.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import missing

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[2]
NODES = 3
FILES = (
    "tests/blackbox/test_access.py",
    "tests/blackbox/test_audit.py",
    "tests/blackbox/test_deactivation.py",
    "tests/blackbox/test_declarative_state.py",
    "tests/blackbox/test_model_access.py",
    "tests/blackbox/test_one_time_links.py",
    "tests/blackbox/test_provider_keys.py",
    "tests/blackbox/test_resumable_streams.py",
    "tests/blackbox/test_stored_providers.py",
    "tests/blackbox/test_stored_responses.py",
    "tests/clients/documents/test_sources.py",
    "tests/clients/documents/test_sync_client.py",
    "tests/clients/scim/test_tester.py",
    "tests/clients/test_anthropic.py",
    "tests/clients/test_chat_flow.py",
    "tests/clients/test_conversations.py",
    "tests/clients/test_openai.py",
    "tests/plugins/test_events.py",
    "tests/plugins/test_install.py",
    "tests/plugins/test_settings.py",
)
OTHERS = {
    # These look into the database of SQLite of one process.
    "tests/blackbox/test_audit_rows.py": ["test_rows_of_acknowledged_changes_survive_a_kill"],
    "tests/blackbox/test_credentials.py": ["test_no_secret_is_in_the_log_at_debug"],
}
"""Files of which some tests cannot be about several nodes, with the names of these."""


def run(file: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a file against nodes, in an interpreter of its own."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "-x"]
    plugin = ["-p", "tests.fakes.cluster.plugin", "--nodes", str(NODES), "--timeout", "600"]
    return subprocess.run(
        [*command, *plugin, *arguments, file],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=1100,
        check=False,
    )


def needed(done: "subprocess.CompletedProcess[str]") -> None:
    """Skip as the file did when a program is missing."""
    if " passed" not in done.stdout and "is not here" in done.stdout:
        missing("a program of the file", done.stdout[-500:])


@pytest.mark.parametrize("file", [*FILES, *OTHERS])
def test_a_file_passes_against_nodes(file: str, tmp_path: Path) -> None:
    left_out = OTHERS.get(file, [])
    chosen = ["-k", " and ".join(f"not {name}" for name in left_out)] if left_out else []
    done = run(file, f"--basetemp={tmp_path / 'b'}", *chosen)
    needed(done)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


def test_the_files_are_there() -> None:
    for file, names in OTHERS.items():
        text = (ROOT / file).read_text()
        assert all(f"def {name}(" in text for name in names), file
    assert all((ROOT / file).is_file() for file in FILES)

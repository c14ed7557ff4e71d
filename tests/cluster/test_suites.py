"""Test files of one daemon pass against a balancer in front of three nodes, each request on another node.

`pytest -m cluster tests/cluster/test_suites.py` runs each file in a process of its own.
"""

from pathlib import Path

import pytest

from tests.suite.plugin_runs import check_passed, run_file

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[2]
PLUGIN = ("tests.fakes.cluster.plugin", "--nodes", "3")
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


@pytest.mark.parametrize("file", [*FILES, *OTHERS])
def test_a_file_passes_against_nodes(file: str, tmp_path: Path) -> None:
    left_out = OTHERS.get(file, [])
    chosen = ["-k", " and ".join(f"not {name}" for name in left_out)] if left_out else []
    check_passed(run_file(file, PLUGIN, f"--basetemp={tmp_path / 'b'}", *chosen))


def test_the_files_are_there() -> None:
    for file, names in OTHERS.items():
        text = (ROOT / file).read_text()
        assert all(f"def {name}(" in text for name in names), file
    assert all((ROOT / file).is_file() for file in FILES)

"""Tests for gatewayd.settings.cluster."""

from collections.abc import Callable

import pytest

from gatewayd.settings import Settings

Load = Callable[..., Settings]
Problems = Callable[..., list[str]]

SERVER = "database_url = 'postgresql://db.example.org/gatewayd'\n"
SECRET = f"webui_secret_key = '{'s' * 32}'\n"


def test_a_daemon_is_no_node_by_default(load_text: Load) -> None:
    settings = load_text()
    assert not settings.cluster
    assert settings.node_name == ""
    assert settings.node_lease == 12


def test_a_node_with_what_it_needs(load_text: Load) -> None:
    assert load_text(f"cluster = true\n{SERVER}{SECRET}").warnings == ()


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (SECRET, "with SQLite: several nodes need database_url with a PostgreSQL server"),
        (
            SERVER,
            "without webui_secret_key: each node would make a secret of its own, and accept no session of the"
            " others",
        ),
    ],
)
def test_a_node_without_it_is_told_what_is_missing(problems: Problems, text: str, missing: str) -> None:
    [problem] = problems(f"cluster = true\n{text}")
    assert problem.endswith(f"cannot use cluster {missing}")

"""Tests for gatewayd.settings.cluster."""

from collections.abc import Callable

import pytest

from gatewayd.settings import Settings

Load = Callable[..., Settings]
Problems = Callable[..., list[str]]

SERVER = "database_url = 'postgresql://db.example.org/gatewayd'\n"
STORE = "file_store = 's3://bucket'\n"
REDIS = "redis_url = 'redis://redis.example.org'\n"
SECRET = f"webui_secret_key = '{'s' * 32}'\n"


def test_a_daemon_is_no_node_by_default(load_text: Load) -> None:
    settings = load_text()
    assert not settings.cluster
    assert settings.node_name == ""
    assert settings.node_lease == 12


def test_a_node_with_what_it_needs(load_text: Load) -> None:
    assert load_text(f"cluster = true\n{SERVER}{SECRET}{STORE}{REDIS}").warnings == ()


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (SECRET + STORE + REDIS, "with SQLite: several nodes need database_url with a PostgreSQL server"),
        (
            SERVER + STORE + REDIS,
            "without webui_secret_key: each node would make a secret of its own, and accept no session of the"
            " others",
        ),
        (
            SERVER + SECRET + REDIS,
            'with file_store = "directory": the files of a node are in its own data_dir, where no other finds'
            " them; set file_store to a directory that all nodes share, or to a bucket",
        ),
        (
            SERVER + SECRET + STORE,
            "without redis_url: events and tickets of a node would not reach the clients of the others",
        ),
    ],
)
def test_a_node_without_it_is_told_what_is_missing(problems: Problems, text: str, missing: str) -> None:
    [problem] = problems(f"cluster = true\n{text}")
    assert problem.endswith(f"cannot use cluster {missing}")

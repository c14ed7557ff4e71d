"""The gateway without metering: it answers as the real one does, and counts and stores nothing."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.bench.goals import goals_table
from tests.fakes.daemons.daemon import running_daemon
from tests.fakes.providers.background_upstream import background_upstream
from tests.fakes.storage.migrated import NAME

QUESTION = {"model": "big", "messages": [{"role": "user", "content": "hello"}]}
ACCOUNT = {"email": "admin@example.com", "password": "correct horse battery", "name": "Admin"}


@pytest.mark.parametrize(("module", "asked"), [("gatewayd", 2), ("tests.bench.unmetered", 0)])
def test_usage_is_stored_by_the_real_one_only(tmp_path: Path, module: str, asked: int) -> None:
    with background_upstream(("big",)) as provider:
        settings = {"OPENAI_API_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "k"}
        with running_daemon(tmp_path, module=module, **settings) as daemon:
            _, signed = daemon.call("POST", "/api/v1/auths/signup", ACCOUNT)
            caller = {"Authorization": f"Bearer {signed['token']}"}
            status, whole = daemon.call("POST", "/api/chat/completions", QUESTION, caller)
            assert (status, bool(whole["choices"][0]["message"]["content"])) == (200, True)
            streamed = {**QUESTION, "stream": True}
            status, stream = daemon.call("POST", "/api/chat/completions", streamed, caller)
            assert (status, stream.rstrip().endswith("data: [DONE]")) == (200, True)
            counted = "gatewayd_model_calls_total{" in daemon.run_ctl("metrics").stdout
            assert counted is bool(asked)
            # The end of the daemon stores what was not yet.
            assert daemon.stop() == 0
    with closing(sqlite3.connect(tmp_path / NAME)) as database:
        assert database.execute("SELECT coalesce(sum(requests), 0) FROM usage").fetchone() == (asked,)


def test_the_difference_is_a_goal() -> None:
    cases = ("plain_64", "paced_64", "unpaced_16")
    runs = {name: {"gatewayd": [{"cpu_us": 9.0}], "unmetered": [{"cpu_us": 2.5}]} for name in cases}
    assert "| <= 8 / 1 / 1 | 6.50 / 6.50 / 6.50 | MISSED |" in goals_table({"runs": runs})

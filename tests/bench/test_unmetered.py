"""The gateway without metering: it answers as the real one does, and counts and stores nothing."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.bench.goals import goals_table
from tests.blackbox.test_fast_path import PROVIDER, Site, message
from tests.fakes.daemons.daemon import running_daemon
from tests.fakes.providers.background_upstream import background_upstream
from tests.fakes.storage.migrated import NAME

ASKED = (message(), message(), message(stream=True))


@pytest.mark.parametrize(
    ("module", "stored"), [("gatewayd", len(ASKED)), ("tests.bench.unmetered", 0)], ids=["real", "unmetered"]
)
def test_usage_is_stored_by_the_real_one_only(tmp_path: Path, module: str, stored: int) -> None:
    file = tmp_path / "gatewayd.toml"
    with background_upstream(("m",)) as provider:
        file.write_text(PROVIDER.format(url=provider.url))
        with running_daemon(tmp_path, "-f", str(file), module=module) as daemon:
            made = daemon.run_ctl("setup", "--email", "root@example.org", "--name", "Root", "-o", "name")
            site = Site(daemon, provider, made.stdout.split()[-1])
            replies = [site.ask(body) for body in ASKED]
            assert {reply.status for reply in replies} == {200}
            assert replies[2].body.rstrip().endswith(b"data: [DONE]")
            calls = "gatewayd_model_calls_total{" in daemon.run_ctl("metrics").stdout
            assert calls is bool(stored)
            # Both take the same way, or their costs could not be compared; the first one looks for its key.
            assert site.fast_count() == len(ASKED) - 1
            # The end of the daemon stores what was not yet.
            assert daemon.stop() == 0
    with closing(sqlite3.connect(tmp_path / NAME)) as database:
        assert database.execute("SELECT coalesce(sum(requests), 0) FROM usage").fetchone() == (stored,)


def test_the_difference_is_a_goal() -> None:
    cases = ("plain_64", "paced_64", "unpaced_16")
    runs = {name: {"gatewayd": [{"cpu_us": 9.0}], "unmetered": [{"cpu_us": 2.5}]} for name in cases}
    assert "| <= 8 / 1 / 1 | 6.50 / 6.50 / 6.50 | MISSED |" in goals_table({"runs": runs})

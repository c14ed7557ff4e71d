"""gatewayctl doctor on a daemon, running and stopped: findings are provoked, and mended by their commands."""

import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gatewayctl.transport import TIMEOUT_SECONDS
from gatewayd.doctor.findings import CODES
from gatewayd.storage.engine.postgres import ACQUIRE_SECONDS, STATEMENT_SECONDS
from tests.fakes.daemons.role_site import Site, opened_roles
from tests.fakes.http.samples_documents import upload
from tests.fakes.providers.background_upstream import background_upstream
from tests.fakes.storage.migrated import migrated_copy

ROOT = Path(__file__).parents[2]
BROKEN = "class Action:\n    def action(self, body):\n        return None\n\n\nraise RuntimeError('hush')\n"
EXPECTED = {"provider-none", "provider-unreachable", "descriptors-low", "disk-low", "disk-full", "unit-open"}
"""Findings that the machine or a daemon without a provider may have."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("s")
    with background_upstream(("m",)) as embedding:
        model = {"RAG_EMBEDDING_ENGINE": "openai", "RAG_EMBEDDING_MODEL": "m"}
        with opened_roles(folder, **model, RAG_OPENAI_API_BASE_URL=f"{embedding.url}/v1") as opened:
            yield prepared(opened)


def prepared(opened: Site) -> Site:
    """Return a site without findings."""
    opened.daemon.state.chmod(0o700)
    (opened.daemon.state.parent / "gatewayd.toml").chmod(0o600)
    return opened


def findings(site: Site) -> dict[str, dict[str, Any]]:
    done = site.daemon.run_ctl("doctor", "-o", "json", env=settings_of(site))
    assert done.returncode in {0, 1, 2}, done.stderr
    return {each["code"]: each for each in json.loads(done.stdout) if each["code"] not in EXPECTED}


def settings_of(site: Site) -> dict[str, str]:
    return {"DATA_DIR": str(site.daemon.state), "PYTHONPATH": str(ROOT)}


def mend(site: Site, finding: dict[str, Any]) -> None:
    """Run the command of a finding: that of gatewayctl against the daemon, others in a shell."""
    words = shlex.split(finding["command"])
    if words[0] == "gatewayd":
        command = [sys.executable, "-m", *words]
        subprocess.run(command, check=True, timeout=60, env={**os.environ, **settings_of(site)})
    elif words[0] == "gatewayctl":
        done = site.daemon.run_ctl(*words[1:])
        assert done.returncode == 0, done.stderr
    else:
        subprocess.run(["/bin/sh", "-c", finding["command"]], check=True, timeout=30)


def old(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    day_old = time.time() - 90_000
    os.utime(path, (day_old, day_old))


def test_what_the_running_daemon_finds_is_mended(site: Site) -> None:
    assert findings(site) == {}
    state = site.daemon.state
    state.chmod(0o755)
    old(state / "files" / "01" / "orphan01")
    old(state / "files" / "incoming" / "half")
    file_id = json.loads(upload(site, site.admin, "?process_in_background=false").body)["id"]
    (state / "files" / file_id[-2:] / file_id).unlink()
    found = findings(site)
    assert set(found) == {"state-open", "files-orphaned", "uploads-abandoned", "file-lost"}
    for finding in found.values():
        mend(site, finding)
    assert findings(site) == {}


def change(site: Site, *statements: str) -> None:
    """Change the database of the daemon from outside."""
    with closing(sqlite3.connect(site.daemon.state / "gatewayd.db", timeout=30)) as database, database:
        for statement in statements:
            database.execute(statement)


def test_what_the_database_lacks_or_has_too_much_of_is_mended(site: Site) -> None:
    upload(site, site.admin, "?process_in_background=false")
    plugin = {"id": "broken", "name": "Broken", "content": BROKEN.split("\n\n\nraise")[0], "meta": {}}
    assert site.call("POST", "/api/v1/functions/create", plugin, site.admin)[0] == 200
    assert site.call("POST", "/api/v1/functions/id/broken/toggle", None, site.admin)[0] == 200
    assert findings(site) == {}
    change(
        site,
        "DELETE FROM vector_batches",
        "INSERT INTO embedding_spaces (name, dimension, is_active) VALUES ('builtin:former:1', 8, 0)",
        f"UPDATE plugins SET content = '{BROKEN.replace(chr(39), chr(39) * 2)}', updated_at = updated_at + 1",
    )
    assert site.daemon.run_ctl("function", "reload").returncode != 2
    found = findings(site)
    assert set(found) == {"index-behind", "vectors-unused", "plugin-broken"}
    for finding in found.values():
        mend(site, finding)
    assert findings(site) == {}


def test_the_audit_log_is_among_the_checks(site: Site) -> None:
    with closing(sqlite3.connect(site.daemon.state / "gatewayd.db")) as database, database:
        database.execute("DROP TRIGGER audit_log_unchanged")
        database.execute("UPDATE audit_log SET actor = 'eve' WHERE sequence = 1")
    found = findings(site)["audit-broken"]
    assert "row 1 was changed" in found["sentence"]
    done = site.daemon.run_ctl("audit", "verify")
    assert (done.returncode, "row 1 was changed" in done.stdout) == (1, True)


def older(state: Path) -> None:
    """Make a database that lacks the last migration, which adds tables."""
    migrated_copy(state)
    with closing(sqlite3.connect(state / "gatewayd.db")) as database, database:
        [(name,)] = database.execute("SELECT max(name) FROM tortoise_migrations").fetchall()
        assert name == "0026_batch_progress", "undo the last migration here"
        database.execute("DROP TABLE passed_batches")
        database.execute("DROP TABLE batch_answers")
        database.execute("DELETE FROM tortoise_migrations WHERE name = ?", (name,))
    (state / "gatewayd.db").chmod(0o600)


def test_a_stopped_gateway(site: Site) -> None:
    """Run last."""
    site.daemon.stop()
    state = site.daemon.state
    assert {"daemon-stopped", "audit-broken"} == set(findings(site))
    with closing(sqlite3.connect(state / "gatewayd.db")) as database, database:
        database.execute(
            "INSERT INTO tortoise_migrations (app, name, applied_at) VALUES ('gatewayd', '9999_x', 1)"
        )
    (state / "secret-key").chmod(0o644)
    found = findings(site)
    assert {"daemon-stopped", "schema-newer", "file-open"} == set(found)
    mend(site, found["file-open"])
    (state / "gatewayd.db").rename(state / "away")
    older(state)
    found = findings(site)
    assert set(found) == {"daemon-stopped", "schema-older"}
    mend(site, found["schema-older"])
    # The checkpoints are those of the former database.
    found = findings(site)
    assert set(found) == {"daemon-stopped", "audit-broken"}
    known = (state / "audit.checkpoints").read_text()
    mend(site, found["audit-broken"])
    assert set(findings(site)) == {"daemon-stopped"}
    assert (state / "audit.checkpoints.former").read_text() == known
    (state / "gatewayd.db").unlink()
    assert {"daemon-stopped", "database-unreachable"} == set(findings(site))
    assert not (state / "gatewayd.db").exists(), "the doctor changes nothing"


def test_the_page_has_every_code_and_its_level() -> None:
    page = (ROOT / "man" / "gatewayd-operations.7").read_text().split(".Sh DOCTOR\n")[1].split(".Sh ")[0]
    rows = re.findall(r"^\.It Li (\S+) Ta (\w+) Ta", page, re.MULTILINE)
    assert rows == [(code.replace("-", "\\-"), level.value) for code, level in CODES.items()]


def test_the_page_has_the_limits_of_a_database_that_does_not_answer() -> None:
    page = " ".join((ROOT / "man" / "gatewayd-operations.7").read_text().split())
    limits = f"{ACQUIRE_SECONDS:g} seconds for a connection, {STATEMENT_SECONDS:g} seconds for a statement"
    assert f"after at most {limits}, and {TIMEOUT_SECONDS:g} seconds for the answer of the daemon" in page

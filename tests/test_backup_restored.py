"""A backup of a daemon that works, verified and restored: the next daemon serves everything that there was.

The same for the secret that was replaced meanwhile, and for a move to PostgreSQL and back.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.blackbox.test_doctor import EXPECTED
from tests.fakes.daemons import forking
from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.storage.postgres import Postgres
from tests.test_backup_documented import PASSWORD, Accounts, addresses, upload

ENCRYPTED = {"ENABLE_VALVE_ENCRYPTION": "true"}
FUNCTION = '''"""
title: Loud
"""
from pydantic import BaseModel


class Filter:
    class Valves(BaseModel):
        word: str = ""

    def inlet(self, body):
        return body
'''


def ctl(state: Path, *words: str, **env: str) -> Any:
    """Run gatewayctl on a state directory, and return its answer."""
    given = {**os.environ, "DATA_DIR": str(state), "PLUGINS_DIR": str(state / "plugins.d"), **env}
    done = forking.run("gatewayctl", [*words, "-o", "json"], given, None, 100)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def findings(daemon: Daemon, **env: str) -> set[str]:
    """Return the codes of what the doctor finds, beside what the machine may have."""
    done = daemon.run_ctl("doctor", "-o", "json", env={"DATA_DIR": str(daemon.state), **ENCRYPTED, **env})
    assert done.returncode in {0, 1, 2}, done.stderr
    return {each["code"] for each in json.loads(done.stdout)} - EXPECTED


class Work:
    """Something of each noun, made over HTTP and found again."""

    def __init__(self, daemon: Daemon, headers: dict[str, str]) -> None:
        self.headers = headers
        self.file = upload(daemon, headers)
        self.chat = self.made(daemon, "/api/v1/chats/new", {"chat": {"title": "heron", "models": ["m"]}})
        self.collection = self.made(daemon, "/api/v1/knowledge/create", {"name": "docs", "description": ""})
        self.group = self.made(daemon, "/api/v1/groups/create", {"name": "crew", "description": ""})
        form = {"id": "loud", "name": "Loud", "content": FUNCTION, "meta": {"description": ""}}
        self.made(daemon, "/api/v1/functions/create", form)
        self.made(daemon, "/api/v1/functions/id/loud/valves/update", {"word": "s3cret"}, "word")
        self.found = self.look(daemon)

    def made(self, daemon: Daemon, path: str, form: Any, field: str = "id") -> str:
        status, answer = daemon.call("POST", path, form, self.headers)
        assert status == 200, (path, answer)
        return str(answer[field])

    def look(self, daemon: Daemon) -> dict[str, Any]:
        """Return what the gateway answers about everything."""
        paths = (
            f"/api/v1/files/{self.file}/content",
            f"/api/v1/chats/{self.chat}",
            f"/api/v1/knowledge/{self.collection}",
            "/api/v1/groups/",
            "/api/v1/functions/id/loud",
            "/api/v1/functions/id/loud/valves",
            "/api/v1/auths/",
            "/api/models",
        )
        found = {path: daemon.call("GET", path, None, self.headers) for path in paths}
        assert {status for status, _ in found.values()} == {200}, found
        # What is not active is loaded when it is changed, and not at a start.
        del found["/api/v1/functions/id/loud"][1]["loaded"]
        account = found.pop("/api/v1/auths/")[1]
        return {**found, "account": account["email"]}


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Work, Accounts, list[str]]:
    """Return a state with a backup that was made while accounts were, and what was acknowledged before it."""
    state = tmp_path_factory.mktemp("worked")
    state.chmod(0o700)
    with running_daemon(state, **ENCRYPTED) as daemon:
        accounts = Accounts(daemon)
        work = Work(daemon, accounts.headers)
        with accounts.being_made():
            known = accounts.wait_for(3)
            ctl(state, "backup", "create")
            accounts.wait_for(1)
    return state, work, accounts, known


def test_everything_works_on_the_restored_state(worked: Any, tmp_path: Path) -> None:
    state, work, accounts, known = worked
    [backup] = ctl(state, "backup", "list")
    assert ctl(state, "backup", "verify")["rows"] == backup["rows"]
    new = tmp_path / "new"
    new.mkdir(mode=0o700)
    shutil.copy(state / "secret-key", new)
    ctl(new, "backup", "restore", backup["path"], "--yes")
    with running_daemon(new, **ENCRYPTED) as daemon:
        assert addresses(daemon, accounts.headers) >= set(known)
        assert work.look(daemon) == work.found
        assert daemon.run_ctl("database", "check").returncode == 0
        assert daemon.run_ctl("collection", "check").returncode == 0
        assert findings(daemon) == set()
    # A new secret: sessions stay, valves are readable, also when the former secret is gone.
    ctl(new, "secret", "rotate", "--overlap-days", "1", "--yes")
    with running_daemon(new, **ENCRYPTED) as daemon:
        assert work.look(daemon) == work.found
        daemon.wait_for("encrypted stored values with the new secret")
    key = new / "secret-key"
    key.write_text(key.read_text().splitlines()[0] + "\n")
    with running_daemon(new, **ENCRYPTED) as daemon:
        assert daemon.call("GET", "/api/v1/auths/", None, accounts.headers)[0] == 401
        form = {"email": "root@example.org", "password": PASSWORD}
        status, answer = daemon.call("POST", "/api/v1/auths/signin", form)
        assert status == 200, answer
        work.headers = {"Authorization": f"Bearer {answer['token']}"}
        assert work.look(daemon) == work.found
        work.headers = accounts.headers


@pytest.mark.real("PostgreSQL")
def test_everything_works_in_postgresql_and_back(worked: Any, tmp_path: Path, postgres: Postgres) -> None:
    state, work, accounts, _ = worked
    new, back = state, tmp_path / "back"
    url = postgres.create_database()
    ctl(new, "database", "copy", "--to", url, "--yes")
    with running_daemon(new, DATABASE_URL=url) as daemon:
        assert work.look(daemon) == work.found
        assert findings(daemon, DATABASE_URL=url) == set()
        people = addresses(daemon, accounts.headers)
    ctl(new, "database", "copy", "--to", f"sqlite:///{back}.db", "--yes", DATABASE_URL=url)
    with running_daemon(new, DATABASE_URL=f"sqlite:///{back}.db") as daemon:
        assert work.look(daemon) == work.found
        assert addresses(daemon, accounts.headers) == people
        assert findings(daemon, DATABASE_URL=f"sqlite:///{back}.db") == set()

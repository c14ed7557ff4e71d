"""Invitations and sign-in links on a real gateway: once, also at once, after a kill, and without a trace."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.daemons.daemon import Daemon, running_daemon

AUTHS = "/api/v1/auths"
PASSWORD = "correct horse battery"
SETTINGS = {"WEBUI_ADMIN_EMAIL": "root@example.org", "WEBUI_ADMIN_PASSWORD": PASSWORD}
AT_ONCE = 8


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("d") / "state"


@pytest.fixture(scope="module")
def daemon(state: Path) -> Iterator[Daemon]:
    with running_daemon(state, GLOBAL_LOG_LEVEL="DEBUG", **SETTINGS) as running:
        yield running


def signed_in(daemon: Daemon) -> dict[str, str]:
    form = {"email": "root@example.org", "password": PASSWORD}
    token = daemon.call("POST", f"{AUTHS}/signin", form)[1]["token"]
    return {"Authorization": f"Bearer {token}"}


def at_once(daemon: Daemon, path: str, bodies: list[dict[str, str]]) -> list[tuple[int, Any]]:
    with ThreadPoolExecutor(len(bodies)) as pool:
        return list(pool.map(lambda body: daemon.call("POST", path, body), bodies))


def test_an_invitation_makes_one_account_also_at_once(daemon: Daemon) -> None:
    admin = signed_in(daemon)
    token = daemon.call("POST", f"{AUTHS}/invitations", {}, admin)[1]["token"]
    forms = [
        {"token": token, "name": "Ada", "email": f"ada{number}@example.org", "password": PASSWORD}
        for number in range(AT_ONCE)
    ]
    found = at_once(daemon, f"{AUTHS}/invitations/accept", forms)
    assert sorted(status for status, _ in found) == [200] + [400] * (AT_ONCE - 1)
    assert {body["error"]["code"] for status, body in found if status == 400} == {"invalid_link"}
    assert len(daemon.call("GET", "/api/v1/users/all", None, admin)[1]["users"]) == 2
    assert token not in "".join(daemon.log)


def test_a_sign_in_link_makes_one_session_also_at_once(daemon: Daemon) -> None:
    made = daemon.run_ctl("user", "sign-in-link", "root@example.org", "-o", "name")
    token = made.stdout.strip().partition("#link=")[2]
    found = at_once(daemon, f"{AUTHS}/link", [{"token": token}] * AT_ONCE)
    assert sorted(status for status, _ in found) == [200] + [400] * (AT_ONCE - 1)
    assert token not in "".join(daemon.log)


def test_what_was_answered_is_there_after_a_kill(daemon: Daemon, state: Path) -> None:
    """The last test: it ends the daemon of the module."""
    invite = daemon.run_ctl("user", "invite", "bea@example.org", "-o", "name")
    token = invite.stdout.strip().partition("#invitation=")[2]
    form = {"token": token, "name": "Bea", "password": PASSWORD}
    session = daemon.call("POST", f"{AUTHS}/invitations/accept", form)[1]["token"]
    daemon.stop(signal.SIGKILL)
    with running_daemon(state, **SETTINGS) as again:
        signed = {"Authorization": f"Bearer {session}"}
        (listed,) = again.call("GET", f"{AUTHS}/sessions", None, signed)[1]
        assert (listed["current"], listed["method"]) == (True, "invitation")
        assert again.call("POST", f"{AUTHS}/invitations/accept", form)[0] == 400
        assert again.run_ctl("invitation", "list", "-o", "name").stdout == ""

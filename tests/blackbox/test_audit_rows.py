"""The rows of the audit log of a running daemon: sign-ins, refusals, changes; kill -9 loses none of them."""

import contextlib
import json
import signal
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from gatewayd.accounts.records import Role
from tests.fakes.daemons.role_site import AUTHS, PASSWORD, USERS, Site, opened_roles

ROOT = "root@example.org"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened_roles(tmp_path_factory.mktemp("s")) as opened:
        yield opened


def search(site: Site, *arguments: str) -> list[dict[str, Any]]:
    done = site.daemon.run_ctl("audit", "search", *arguments, "-o", "jsonl")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_sign_ins_and_refusals(site: Site) -> None:
    for password, status in ((PASSWORD, 200), ("wrong", 400)):
        form = {"email": ROOT, "password": password}
        assert site.call("POST", f"{AUTHS}/signin", form, None)[0] == status
    good = search(site, "--action", "sign-in", "--who", ROOT)[-2]
    assert (good["action"], good["actor_kind"], good["result"]) == ("sign-in", "account", "done")
    bad = search(site, "--action", "sign-in refused")[-1]
    assert (bad["actor"], bad["address"], bad["result"]) == (ROOT, "127.0.0.1", "refused")
    assert bad["detail"] == "cannot sign in: wrong e-mail or password"

    _, token = site.add(Role.USER)
    assert site.call("GET", f"{USERS}/", None, token)[0] == 403
    assert site.call("GET", f"{USERS}/", None, "sk-" + "0" * 40)[0] == 401
    assert site.call("GET", f"{USERS}/", None, None)[0] == 401
    forbidden, unknown = search(site, "--action", "refused: GET")[-2:]
    assert (forbidden["actor_kind"], forbidden["target"]) == ("account", f"{USERS}/")
    assert forbidden["detail"] == "cannot do this: an administrator is needed"
    assert (unknown["actor_kind"], unknown["actor"]) == ("anonymous", "")


def test_before_and_after_and_the_prefix_of_the_key(site: Site) -> None:
    user_id, _ = site.add(Role.USER)
    site.configure(ENABLE_API_KEYS=True)
    robot_id, _ = site.add(Role.ADMIN)
    robot = site.call("GET", f"{USERS}/{robot_id}", None, site.admin)[1]["email"]
    site.add_group(robot_id, features={"api_keys": True})
    made = site.daemon.run_ctl("key", "create", robot, "robot", "-o", "json")
    assert made.returncode == 0, made.stderr
    key = json.loads(made.stdout)["value"]
    body = {"id": user_id, "role": "admin"}
    status, reply = site.call("POST", f"{USERS}/update/role", body, key)
    assert status == 200, reply
    row = search(site, "--action", "/update/role")[-1]
    assert (row["actor"], row["actor_kind"]) == (robot, "key")
    assert row["key"]
    assert key.startswith(row["key"])
    assert key not in json.dumps(row)
    assert (row["before"], row["after"]) == ({"role": "user"}, {"role": "admin"})
    row = search(site, "--action", "key create")[-1]
    assert (row["actor_kind"], row["target"]) == ("unix", f"{robot} robot")


def test_rows_of_acknowledged_changes_survive_a_kill(site: Site) -> None:
    """Run last: the daemon is gone afterwards."""
    assert site.daemon.run_ctl("audit", "verify", "-o", "name").stdout == "sound\n"
    for place in range(20):
        form = {"name": f"K{place}", "email": f"k{place}@example.org", "password": PASSWORD, "role": "user"}
        assert site.call("POST", f"{AUTHS}/add", form, site.admin)[0] == 200
    site.daemon.process.send_signal(signal.SIGKILL)
    site.daemon.process.wait()
    with contextlib.closing(sqlite3.connect(site.daemon.state / "gatewayd.db")) as database:
        found = database.execute("SELECT subject FROM audit_log WHERE action LIKE '%auths/add' ORDER BY 1")
        kept = {subject for (subject,) in found}
    assert {f"k{place}@example.org" for place in range(20)} <= kept

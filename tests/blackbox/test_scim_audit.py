"""What the log of a running daemon tells of provisioning: one line for each operation, and no secret."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.fakes.daemons.bad_provisioning_site import PROVIDER, ROOT, SCIM_JSON, TOKEN
from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.http.raw_http import Reply, send

PASSWORDS = ("hunter-in-a-body", "hunter-in-a-put", "hunter-in-a-patch")
GUESS = "guess-0123456789abcdef0123456789"
SECRETS = (TOKEN, TOKEN[:20], TOKEN[-20:], GUESS, *PASSWORDS)
ODD = 'line\u2028break \u202e "quoted" \x1b[31m 🙂 request_id=forged'


class Client:
    """A provider that numbers its requests."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.count = 0

    def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        self.count += 1
        signed = {"Authorization": f"Bearer {TOKEN}", "X-Request-Id": f"r{self.count}"}
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {**signed, "Content-Type": SCIM_JSON, **(headers or {})}
        return send(self.daemon.base_url, method, ROOT + path, data, sent)


def patch(*operations: Any) -> Any:
    return {"Operations": list(operations)}


def work(client: Client) -> tuple[str, str]:
    """Do one of everything; return the ids of the user and the group."""
    user = {"userName": "ada@example.org", "externalId": "7", "password": PASSWORDS[0]}
    made = client.ask("POST", "/Users", user)  # r1
    assert made.status == 201
    user_id = made.json["id"]
    client.ask("GET", f"/Users/{user_id}")
    client.ask("PUT", f"/Users/{user_id}", {**user, "displayName": ODD[:4], "password": PASSWORDS[1]})
    operations = [
        {"op": "replace", "path": "password", "value": PASSWORDS[2]},
        {"op": "replace", "path": "displayName", "value": "José \u202e"},
    ]
    client.ask("PATCH", f"/Users/{user_id}", patch(*operations))  # r4
    client.ask("GET", f"/Users?filter={quote(f'displayName eq {json.dumps(ODD)}')}")
    client.ask("POST", "/Users/.search", {"filter": "userName pr"})
    group = client.ask("POST", "/Groups", {"displayName": "Staff", "members": [{"value": user_id}]})  # r7
    group_id = group.json["id"]
    client.ask("PATCH", f"/Groups/{group_id}", patch({"op": "remove", "path": "members"}))
    client.ask("DELETE", f"/Groups/{group_id}")
    client.ask("DELETE", f"/Users/{user_id}")  # r10
    client.ask("POST", "/Users", user)
    client.ask("POST", "/Users", b"{" + PASSWORDS[0].encode())
    client.ask("GET", "/Users", headers={"Authorization": f"Bearer {GUESS}"})  # r13
    client.ask("GET", f"/Users?access_token={TOKEN}", headers={"Authorization": "Basic x"})
    client.ask("DELETE", f"/Users/{quote(ODD)}")
    client.ask("GET", "/ServiceProviderConfig")
    client.ask("POST", "/Bulk", {})  # r17
    return user_id, group_id


def running(folder: Path, log_format: str) -> Any:
    settings = {"SCIM_ENABLED": "true", "SCIM_TOKEN": TOKEN, "SCIM_AUTH_PROVIDER": PROVIDER}
    return running_daemon(folder, GLOBAL_LOG_LEVEL="debug", LOG_FORMAT=log_format, **settings)


class Told:
    """The log of a daemon that did one of everything and was stopped."""

    def __init__(self, folder: Path) -> None:
        with running(folder, "json") as daemon:
            self.user_id, self.group_id = work(Client(daemon))
            self.shown = daemon.run_ctl("scim", "log").stdout
            daemon.stop()
        self.log = "".join(daemon.log)
        lines = [json.loads(line) for line in self.log.splitlines()]
        self.audit = {line["request_id"]: line for line in lines if line["logger"] == "gatewayd.audit"}
        self.count = sum(line["logger"] == "gatewayd.audit" for line in lines)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    return Told(tmp_path_factory.mktemp("s"))


def test_each_operation_has_one_line(told: Told) -> None:
    assert list(told.audit) == [f"r{number}" for number in range(1, 18)]
    assert told.count == 17
    assert [line["message"].removeprefix("scim: ") for line in told.audit.values()] == [
        "create a user",
        "show a user",
        "replace a user",
        "change a user",
        "list users",
        "search users",
        "create a group",
        "change a group",
        "remove a group",
        "deactivate a user",
        "create a user",
        "create a user",
        "list users",
        "list users",
        "deactivate a user",
        "show the service provider configuration",
        "refuse an unsupported operation",
    ]
    statuses = [201, 200, 200, 200, 200, 200, 201, 204, 204, 204, 409, 400, 401, 401, 404, 200, 501]
    assert [line["status"] for line in told.audit.values()] == statuses
    assert {line["address"] for line in told.audit.values()} == {"127.0.0.1"}


def test_a_line_says_who_did_what_to_whom(told: Told) -> None:
    strangers = {"r13", "r14"}
    assert {line["by"] for name, line in told.audit.items() if name not in strangers} == {f"scim:{PROVIDER}"}
    assert {told.audit[name]["by"] for name in strangers} == {"unknown"}
    assert {told.audit[name]["target"] for name in ("r1", "r3", "r4", "r10")} == {told.user_id}
    assert {told.audit[name]["target"] for name in ("r7", "r8", "r9")} == {told.group_id}
    assert told.audit["r5"]["target"] == f"displayName eq {json.dumps(ODD)}"


def test_a_change_says_what_was_before_and_after(told: Told) -> None:
    made, renamed, changed = told.audit["r1"], told.audit["r3"], told.audit["r4"]
    assert "before" not in made
    assert made["after"].items() >= {"userName": "ada@example.org", "externalId": "7", "active": True}.items()
    assert renamed["after"] == {"displayName": "line"}
    assert (changed["before"], changed["after"]) == ({"displayName": "line"}, {"displayName": "José \u202e"})
    ended = told.audit["r10"]
    assert (ended["before"], ended["after"]) == ({"active": True}, {"active": False})
    assert told.audit["r9"]["before"]["displayName"] == "Staff"
    assert "1" in told.audit["r7"]["members"]
    assert "1" in told.audit["r8"]["members"]
    for name in ("r2", "r5", "r6", "r11", "r12", "r13", "r15"):
        assert not {"before", "after"} & told.audit[name].keys()


def test_a_refusal_says_why(told: Told) -> None:
    refused = {name: line["refused"] for name, line in told.audit.items() if line["status"] >= 400}
    assert refused.keys() == {"r11", "r12", "r13", "r14", "r15", "r17"}
    assert "is taken" in refused["r11"]
    assert "JSON" in refused["r12"]
    assert "not valid" in refused["r13"]
    assert not [line for line in told.audit.values() if line["status"] < 400 and "refused" in line]


def test_no_secret_is_told_anywhere(told: Told) -> None:
    for secret in SECRETS:
        assert secret not in told.log
        assert secret not in told.shown
    assert "r17" in told.shown or "/Bulk" in told.shown


def test_lines_of_text_cannot_be_forged(tmp_path: Path) -> None:
    with running(tmp_path / "s", "text") as daemon:
        work(Client(daemon))
        shown = daemon.run_ctl("scim", "log").stdout
        daemon.stop()
    log = "".join(daemon.log)
    lines = [line for line in log.split("\n") if " gatewayd.audit: " in line]
    assert len(lines) == 17
    for text in (log, shown):
        assert not {"\x1b", "\u2028", "\u202e", "\r"} & set(text)
        assert [secret for secret in SECRETS if secret in text] == []
    assert [line for line in lines if "request_id=r4 " in line and "José" in line]

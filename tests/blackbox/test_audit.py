"""What the log of a running daemon tells of changes and sign-ins: who, whom, the values, and no secret."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from gatewayd.accounts.records import Role
from tests.fakes.daemons.bad_input_site import ACTION, TOOL
from tests.fakes.daemons.role_site import AUTHS, GROUPS, MODELS, PASSWORD, USERS, Site, opened_roles
from tests.fakes.http.samples_documents import upload

HUSH = "hush-canary"
VALVES = TOOL.replace("a: int = 1", "a: str = ''")
SERVER = {"url": "http://127.0.0.1:1/x", "key": HUSH, "headers": {"X-Secret": HUSH}, "info": {"id": "one"}}
READ = [{"principal_type": "user", "principal_id": "*", "permission": "read"}]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened_roles(tmp_path_factory.mktemp("s"), LOG_FORMAT="json") as opened:
        yield opened


class Changes:
    """Sends requests as the administrator and finds the line of each."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.count = 0

    def line(self, method: str, path: str, body: Any, token: str | None, status: int = 200) -> dict[str, Any]:
        """Send a request and return its one line of the audit, without what every line has."""
        self.count += 1
        name = f"audit-{self.count}-{time.monotonic_ns()}"
        found, answer = self.site.call(method, path, body, token, X_Request_Id=name)
        assert found == status, answer
        deadline = time.monotonic() + 10
        while not (lines := self._lines(name)) and time.monotonic() < deadline:
            time.sleep(0.02)
        (line,) = lines
        assert line["request_id"] == name
        plain = {"time", "level", "logger", "request_id"}
        return {key: value for key, value in line.items() if key not in plain}

    def changed(self, path: str, body: Any, method: str = "POST") -> tuple[str, Any]:
        """Return the subject and the values of a change by the administrator."""
        line = self.line(method, path, body, self.site.admin)
        assert line["by"] == "root@example.org"
        assert line["target"] == path.partition("?")[0]
        return line["subject"], line.get("values")

    def _lines(self, name: str) -> list[dict[str, Any]]:
        entries = [json.loads(line) for line in list(self.site.daemon.log) if name in line]
        return [entry for entry in entries if entry["logger"] == "gatewayd.audit"]


@pytest.fixture
def changes(site: Site) -> Changes:
    return Changes(site)


def test_who_was_made_administrator_by_whom(site: Site, changes: Changes) -> None:
    user_id, _ = site.add(Role.USER)
    email = site.call("GET", f"{USERS}/{user_id}", None, site.admin)[1]["email"]
    role = {"id": user_id, "role": "admin"}
    assert changes.changed(f"{USERS}/update/role", role) == (email, {"role": "admin"})
    form = {"role": "user", "email": "New@example.org", "password": HUSH, "profile_image_url": "/x.png"}
    values = {"role": "user", "email": "New@example.org", "password_is_set": True}
    assert changes.changed(f"{USERS}/{user_id}/update", form) == ("new@example.org", values)
    assert changes.changed(f"{USERS}/{user_id}", None, "DELETE") == ("new@example.org", None)
    form = {"name": "N", "email": "made@example.org", "password": HUSH, "role": "admin"}
    values = {"name": "N", "role": "admin"}
    assert changes.changed(f"{AUTHS}/add", form) == ("made@example.org", values)


def test_changes_of_groups(site: Site, changes: Changes) -> None:
    rights = {"features": {"api_keys": True}}
    form = {"name": "Staff", "description": "", "permissions": rights, "data": {"x": HUSH}}
    assert changes.changed(f"{GROUPS}/create", form) == ("Staff", {"permissions": rights})
    group = site.call("GET", f"{GROUPS}/", None, site.admin)[1][-1]["id"]
    one = f"{GROUPS}/id/{group}"
    rights = {"features": {"api_keys": False}}
    assert changes.changed(f"{one}/update", {"permissions": rights}) == ("Staff", {"permissions": rights})
    members = {"user_ids": [site.ids["user"]]}
    assert changes.changed(f"{one}/users/add", members) == ("Staff", {"added": members["user_ids"]})
    assert changes.changed(f"{one}/users/remove", members) == ("Staff", {"removed": members["user_ids"]})
    assert changes.changed(f"{one}/delete", None, "DELETE") == ("Staff", None)


def test_changes_of_settings_and_default_permissions(site: Site, changes: Changes) -> None:
    form = {"ENABLE_SIGNUP": True, "DEFAULT_USER_ROLE": "pending", "unknown": HUSH}
    values = {"ENABLE_SIGNUP": True, "DEFAULT_USER_ROLE": "pending"}
    assert changes.changed(f"{AUTHS}/admin/config", form) == ("settings", values)
    defaults = f"{USERS}/default/permissions"
    values = {"features.api_keys": True}
    assert changes.changed(defaults, {"features": {"api_keys": True}}) == ("default permissions", values)
    assert changes.changed(defaults, {}) == ("default permissions", {"features.api_keys": False})


def test_changes_of_models(changes: Changes) -> None:
    form = {"id": "mine", "name": "Mine", "base_model_id": "o.m", "params": {"system": HUSH}}
    values = {"name": "Mine", "base_model_id": "o.m", "is_active": True}
    assert changes.changed(f"{MODELS}/create", form) == ("mine", values)
    grant = {"id": "mine", "access_grants": READ}
    assert changes.changed(f"{MODELS}/model/access/update", grant) == ("mine", {"access_grants": READ})
    toggle = f"{MODELS}/model/toggle?id=mine"
    assert changes.changed(toggle, None) == ("mine", {"is_active": False})
    assert changes.changed(f"{MODELS}/model/delete", {"id": "mine"}) == ("mine", None)


@pytest.mark.parametrize("family", ["functions", "tools"])
def test_changes_of_plugins(changes: Changes, family: str) -> None:
    base = f"/api/v1/{family}"
    source = VALVES if family == "tools" else VALVES.replace("Tools", "Action").replace("look", "action")
    form = {"id": "one", "name": "One", "content": source, "meta": {"description": HUSH}}
    assert changes.changed(f"{base}/create", form) == ("one", {"name": "One"})
    one = f"{base}/id/one"
    values = {"changed": ["content", "name"]}
    assert changes.changed(f"{one}/update", {"name": "Two", "content": source}) == ("one", values)
    assert changes.changed(f"{one}/valves/update", {"a": HUSH}) == ("one", {"changed": ["a"]})
    if family == "tools":
        grants = {"access_grants": READ}
        assert changes.changed(f"{one}/access/update", grants) == ("one", grants)
    else:
        assert changes.changed(f"{one}/toggle", None) == ("one", {"is_active": True})
        assert changes.changed(f"{one}/toggle/global", None) == ("one", {"is_global": True})
    assert changes.changed(f"{one}/delete", None, "DELETE") == ("one", None)


def test_changes_of_many_functions_and_of_tool_servers(changes: Changes) -> None:
    function = {"id": "two", "name": "Two", "content": ACTION, "meta": {"description": ""}}
    synced = changes.changed("/api/v1/functions/sync", {"functions": [function]})
    assert synced == ("functions", {"ids": ["two"]})
    servers = "/api/v1/configs/tool_servers"
    assert changes.changed(servers, {"TOOL_SERVER_CONNECTIONS": [SERVER]}) == (
        "tool servers",
        {"ids": ["one"]},
    )
    assert changes.changed(servers, {"TOOL_SERVER_CONNECTIONS": []}) == ("tool servers", {"ids": []})


def test_changes_of_collections_and_files(site: Site, changes: Changes) -> None:
    base = "/api/v1/knowledge"
    subject, values = changes.changed(f"{base}/create", {"name": "Law", "access_grants": READ})
    assert (subject, values["access_grants"]) == ("Law", READ)
    one, named = f"{base}/{values['id']}", {"id": values["id"]}
    form = {"name": "Laws", "description": "new"}
    assert changes.changed(f"{one}/update", form) == (
        "Laws",
        {**named, "description": "new", "access_grants": READ},
    )
    shared = changes.changed(f"{one}/access/update", {"access_grants": []})
    assert shared == ("Laws", {**named, "access_grants": []})
    file_id = json.loads(upload(site, site.admin, "?process_in_background=false").body)["id"]
    member = {"file_id": file_id}
    assert changes.changed(f"{one}/file/add", member) == ("Laws", {**named, "added": [file_id]})
    removed = changes.changed(f"{one}/file/remove?delete_file=false", member)
    assert removed == ("Laws", {**named, "removed": [file_id]})
    batch = changes.changed(f"{one}/files/batch/add", [member])
    assert batch == ("Laws", {**named, "added": [file_id]})
    assert changes.changed(f"{one}/reset", None) == ("Laws", {**named, "removed": "every file"})
    subject, values = changes.changed(f"/api/v1/files/{file_id}", None, "DELETE")
    assert (subject, values["id"]) == ("a.txt", file_id)
    assert changes.changed(f"{one}/delete", None, "DELETE") == ("Laws", named)


def test_a_password_and_keys_of_ones_own(site: Site, changes: Changes) -> None:
    site.configure(ENABLE_API_KEYS=True)
    user_id, token = site.add(Role.USER)
    site.add_group(user_id, features={"api_keys": True})
    line = changes.line("POST", f"{AUTHS}/api_keys", {"name": "laptop"}, token)
    assert (line["subject"], line["by"]) == ("laptop", line["by"])
    key_id = line["values"]["id"]
    assert changes.line("DELETE", f"{AUTHS}/api_keys/{key_id}", None, token)["subject"] == key_id
    assert changes.line("DELETE", f"{AUTHS}/api_key", None, token)["subject"] == "every key"
    form = {"password": PASSWORD, "new_password": HUSH}
    line = changes.line("POST", f"{AUTHS}/update/password", form, token)
    assert (line["subject"], line["values"]) == (line["by"], {"password_is_set": True})


def test_sign_ins_and_sign_ups(site: Site, changes: Changes) -> None:
    good = {"email": "Root@example.org", "password": PASSWORD}
    line = changes.line("POST", f"{AUTHS}/signin", good, None)
    assert line == {"message": "sign-in", "account": "root@example.org", "address": "127.0.0.1"}
    line = changes.line("POST", f"{AUTHS}/signin", {**good, "password": HUSH}, None, 400)
    refused = "cannot sign in: wrong e-mail or password"
    assert line == {
        "message": "sign-in refused",
        "account": "Root@example.org",
        "address": "127.0.0.1",
        "refused": refused,
    }
    site.configure(ENABLE_SIGNUP=True, DEFAULT_USER_ROLE="pending")
    form = {"name": "Eve", "email": "eve@example.org", "password": HUSH}
    line = changes.line("POST", f"{AUTHS}/signup", form, None)
    assert (line["message"], line["account"], line["role"]) == ("sign-up", "eve@example.org", "pending")
    line = changes.line("POST", f"{AUTHS}/signup", form, None, 409)
    assert line == {
        "message": "sign-up refused",
        "account": "eve@example.org",
        "address": "127.0.0.1",
        "refused": "cannot sign up with this e-mail address: sign in, or ask the administrator",
    }


def test_no_secret_is_told(site: Site) -> None:
    log = "".join(site.daemon.log)
    assert PASSWORD not in log
    assert HUSH not in log

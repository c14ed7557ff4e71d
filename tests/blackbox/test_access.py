"""Who may call what: every row of the public application, and every way of sending a credential."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from gatewayd.accounts.records import Role
from gatewayd.http.openapi import POLICY
from gatewayd.http.routes import Access
from tests.fakes.daemon import Daemon, running_daemon
from tests.fakes.slow import slow_provider

PASSWORD = "correct horse"
PUBLIC_GRANT = [{"principal_type": "user", "principal_id": "*", "permission": "read"}]
CHAT = {"model": "slow", "messages": [{"role": "user", "content": "hi"}], "stream": True}


@dataclass
class Site:
    """A running gateway with an account of each role; `admin`, `user` and `pending` are session tokens."""

    daemon: Daemon
    admin: str = ""
    user: str = ""
    pending: str = ""
    ids: dict[str, str] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)

    def call(
        self, method: str, path: str, body: Any = None, token: str | None = None, **headers: str
    ) -> tuple[int, Any]:
        sent: dict[str, str] = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        return self.daemon.call(method, path, body, sent)

    def add(self, role: Role) -> tuple[str, str]:
        """Add an account and return its id and a session token."""
        form = {"name": "N", "email": f"u{next(self.numbers)}@example.org", "password": PASSWORD}
        status, made = self.call("POST", "/api/v1/auths/add", {**form, "role": role.value}, self.admin)
        assert status == 200, made
        return made["id"], made["token"]

    def add_group(self, *members: str, **permissions: Mapping[str, bool]) -> str:
        form = {"name": f"g{next(self.numbers)}", "description": "", "permissions": permissions}
        group: str = self.call("POST", "/api/v1/groups/create", form, self.admin)[1]["id"]
        self.call("POST", f"/api/v1/groups/id/{group}/users/add", {"user_ids": members}, self.admin)
        return group

    def configure(self, **values: Any) -> None:
        status, answer = self.call("POST", "/api/v1/auths/admin/config", values, self.admin)
        assert status == 200, answer


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    state = tmp_path_factory.mktemp("s")
    with slow_provider() as provider:
        provider.release.set()
        settings = {"OPENAI_API_BASE_URLS": f"{provider.url}/v1", "OPENAI_API_KEYS": "k", "ENV": "dev"}
        with running_daemon(Path(state), **settings) as daemon:
            made = Site(daemon)
            form = {"name": "Root", "email": "root@example.org", "password": PASSWORD}
            made.admin = made.call("POST", "/api/v1/auths/signup", form)[1]["token"]
            made.ids["user"], made.user = made.add(Role.USER)
            made.ids["pending"], made.pending = made.add(Role.PENDING)
            yield made


Sample = Callable[[Site], tuple[str, Any]]
"""Makes the path and body of a request that succeeds for somebody who may."""


def plain(path: str, body: Any = None) -> Sample:
    return lambda _: (path, body)


def with_user(template: str, body: Any = None) -> Sample:
    return lambda site: (template.format(id=site.add(Role.USER)[0]), body)


def with_group(template: str, body: Any = None) -> Sample:
    return lambda site: (template.format(id=site.add_group()), body)


def with_record(path: str, body: Any = None) -> Sample:
    def make(site: Site) -> tuple[str, Any]:
        site.call("POST", "/api/v1/models/create", {"id": "slow", "access_grants": PUBLIC_GRANT}, site.admin)
        return path, body

    return make


MODEL_ACCESS = {"id": "slow", "access_grants": PUBLIC_GRANT}
AUTHS, USERS, GROUPS, MODELS = "/api/v1/auths", "/api/v1/users", "/api/v1/groups", "/api/v1/models"

# One sample for each row that needs a credential; a row without one fails the test below.
SAMPLES: dict[tuple[str, str], Sample] = {
    ("GET", "/api/models"): plain("/api/models"),
    ("GET", MODELS): plain(MODELS),
    ("GET", "/v1/models"): plain("/v1/models"),
    ("GET", "/api/models/base"): plain("/api/models/base"),
    ("GET", f"{MODELS}/base"): plain(f"{MODELS}/base"),
    ("GET", f"{MODELS}/list"): plain(f"{MODELS}/list"),
    ("GET", f"{MODELS}/model"): with_record(f"{MODELS}/model?id=slow"),
    ("POST", f"{MODELS}/create"): plain(f"{MODELS}/create", {"id": "extra"}),
    ("POST", f"{MODELS}/model/update"): plain(f"{MODELS}/model/update", {"id": "extra"}),
    ("POST", f"{MODELS}/model/access/update"): plain(f"{MODELS}/model/access/update", MODEL_ACCESS),
    ("POST", f"{MODELS}/model/toggle"): with_record(f"{MODELS}/model/toggle?id=slow"),
    ("POST", f"{MODELS}/model/delete"): with_record(f"{MODELS}/model/delete", {"id": "slow"}),
    ("GET", "/api/models/{id}"): with_record("/api/models/slow"),
    ("GET", MODELS + "/{id}"): with_record(f"{MODELS}/slow"),
    ("GET", "/v1/models/{id}"): with_record("/v1/models/slow"),
    ("POST", "/api/chat/completions"): with_record("/api/chat/completions", CHAT),
    ("POST", "/api/v1/chat/completions"): with_record("/api/v1/chat/completions", CHAT),
    ("POST", "/v1/chat/completions"): with_record("/v1/chat/completions", CHAT),
    ("GET", f"{AUTHS}/"): plain(f"{AUTHS}/"),
    ("POST", f"{AUTHS}/add"): lambda site: (
        f"{AUTHS}/add",
        {"name": "N", "email": f"n{next(site.numbers)}@example.org", "password": PASSWORD},
    ),
    ("POST", f"{AUTHS}/update/profile"): plain(f"{AUTHS}/update/profile", {"name": "New"}),
    ("POST", f"{AUTHS}/update/timezone"): plain(f"{AUTHS}/update/timezone", {"timezone": "UTC"}),
    ("GET", f"{AUTHS}/api_keys"): plain(f"{AUTHS}/api_keys"),
    ("GET", f"{AUTHS}/admin/details"): plain(f"{AUTHS}/admin/details"),
    ("GET", f"{AUTHS}/admin/config"): plain(f"{AUTHS}/admin/config"),
    ("POST", f"{AUTHS}/admin/config"): plain(f"{AUTHS}/admin/config", {"SHOW_ADMIN_DETAILS": True}),
    ("GET", f"{USERS}/"): plain(f"{USERS}/"),
    ("GET", f"{USERS}/all"): plain(f"{USERS}/all"),
    ("GET", f"{USERS}/search"): plain(f"{USERS}/search"),
    ("GET", f"{USERS}/groups"): plain(f"{USERS}/groups"),
    ("GET", f"{USERS}/user/settings"): plain(f"{USERS}/user/settings"),
    ("POST", f"{USERS}/user/settings/update"): plain(f"{USERS}/user/settings/update", {"ui": {}}),
    ("GET", f"{USERS}/user/info"): plain(f"{USERS}/user/info"),
    ("POST", f"{USERS}/user/info/update"): plain(f"{USERS}/user/info/update", {"a": 1}),
    ("POST", f"{USERS}/update/role"): lambda site: (
        f"{USERS}/update/role",
        {"id": site.add(Role.USER)[0], "role": "pending"},
    ),
    ("GET", USERS + "/{id}"): with_user(USERS + "/{id}"),
    ("DELETE", USERS + "/{id}"): with_user(USERS + "/{id}"),
    ("GET", USERS + "/{id}/info"): with_user(USERS + "/{id}/info"),
    ("GET", USERS + "/{id}/active"): with_user(USERS + "/{id}/active"),
    ("GET", USERS + "/{id}/groups"): with_user(USERS + "/{id}/groups"),
    ("POST", USERS + "/{id}/update"): with_user(USERS + "/{id}/update", {"name": "New"}),
    ("GET", f"{USERS}/permissions"): plain(f"{USERS}/permissions"),
    ("GET", f"{USERS}/default/permissions"): plain(f"{USERS}/default/permissions"),
    ("POST", f"{USERS}/default/permissions"): plain(f"{USERS}/default/permissions", {}),
    ("GET", f"{USERS}/default/permissions/defaults"): plain(f"{USERS}/default/permissions/defaults"),
    ("GET", f"{GROUPS}/"): plain(f"{GROUPS}/"),
    ("POST", f"{GROUPS}/create"): lambda site: (
        f"{GROUPS}/create",
        {"name": f"h{next(site.numbers)}", "description": ""},
    ),
    ("GET", GROUPS + "/id/{id}"): with_group(GROUPS + "/id/{id}"),
    ("GET", GROUPS + "/id/{id}/info"): lambda site: (
        f"{GROUPS}/id/{site.add_group(site.ids['user'])}/info",
        None,
    ),
    ("GET", GROUPS + "/id/{id}/export"): with_group(GROUPS + "/id/{id}/export"),
    ("POST", GROUPS + "/id/{id}/users"): with_group(GROUPS + "/id/{id}/users", {}),
    ("POST", GROUPS + "/id/{id}/update"): with_group(GROUPS + "/id/{id}/update", {"description": "d"}),
    ("POST", GROUPS + "/id/{id}/users/add"): with_group(GROUPS + "/id/{id}/users/add", {"user_ids": []}),
    ("POST", GROUPS + "/id/{id}/users/remove"): with_group(
        GROUPS + "/id/{id}/users/remove", {"user_ids": []}
    ),
    ("DELETE", GROUPS + "/id/{id}/delete"): with_group(GROUPS + "/id/{id}/delete"),
}

# Rows whose success depends on more than who asks: tested below, each by its own name.
OWN_TESTS = {
    ("POST", f"{AUTHS}/update/password"),
    ("POST", f"{AUTHS}/api_key"),
    ("GET", f"{AUTHS}/api_key"),
    ("DELETE", f"{AUTHS}/api_key"),
    ("POST", f"{AUTHS}/api_keys"),
    ("DELETE", f"{AUTHS}/api_keys/{{id}}"),
}


def rows(site: Site) -> dict[tuple[str, str], Access]:
    """Return every documented row with its policy."""
    policies = {sentence: access for access, sentence in POLICY.items()}
    document = site.call("GET", "/openapi.json")[1]
    return {
        (method.upper(), path): policies[operation["description"]]
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }


def test_each_row_has_a_policy_and_a_sample(site: Site) -> None:
    found = rows(site)
    guarded = {row for row, access in found.items() if access not in {Access.PUBLIC, Access.OPTIONAL}}
    assert guarded == SAMPLES.keys() | OWN_TESTS
    open_rows = {row for row, access in found.items() if access in {Access.PUBLIC, Access.OPTIONAL}}
    assert open_rows == {
        ("GET", "/health"),
        ("GET", "/health/db"),
        ("GET", "/livez"),
        ("GET", "/readyz"),
        ("GET", "/ready"),
        ("GET", "/api/version"),
        ("GET", "/api/config"),
        ("POST", f"{AUTHS}/signin"),
        ("POST", f"{AUTHS}/signup"),
        ("POST", f"{AUTHS}/signout"),
        ("GET", f"{AUTHS}/signout"),
    }


@pytest.mark.parametrize("row", [pytest.param(row, id=" ".join(row)) for row in SAMPLES])
def test_row_lets_in_whom_it_should(site: Site, row: tuple[str, str]) -> None:
    method, access = row[0], rows(site)[row]

    def status(token: str | None) -> int:
        path, body = SAMPLES[row](site)
        return site.call(method, path, body, token)[0]

    assert status(None) == 401
    assert status("sk-" + "0" * 64) == 401
    assert status("eyJhbGciOiJub25lIn0.e30.") == 401
    assert status(site.pending) == (200 if access is Access.ACCOUNT else 403)
    assert status(site.user) == (403 if access is Access.ADMIN else 200)
    assert status(site.admin) == 200


WAYS: dict[str, Callable[[str], dict[str, str]]] = {
    "bearer": lambda value: {"Authorization": f"Bearer {value}"},
    "x-api-key": lambda value: {"x-api-key": value},
    "cookie": lambda value: {"Cookie": f"token={value}"},
}


@dataclass
class Person:
    """An account with the right to have a key, and both of its credentials."""

    site: Site
    user_id: str
    group: str
    session: str
    key: str

    def status(self, credential: str, way: str, path: str = "/api/models") -> int:
        return self.site.daemon.call("GET", path, None, WAYS[way](credential))[0]

    def statuses(self, way: str) -> tuple[int, int]:
        """Return how key and session fare."""
        return self.status(self.key, way), self.status(self.session, way)


@pytest.fixture
def person(site: Site) -> Iterator[Person]:
    site.configure(ENABLE_API_KEYS=True)
    user_id, session = site.add(Role.USER)
    group = site.add_group(user_id, features={"api_keys": True})
    status, made = site.call("POST", f"{AUTHS}/api_key", {"name": "k"}, session)
    assert status == 200, made
    yield Person(site, user_id, group, session, made["api_key"])
    site.configure(ENABLE_API_KEYS=False, ENABLE_API_KEYS_ENDPOINT_RESTRICTIONS=False)


@pytest.mark.parametrize("way", WAYS)
class TestEveryWayOfSendingACredential:
    """What ends a credential ends it at once, however it is sent."""

    def test_both_levels_bind_keys_and_spare_sessions(self, person: Person, way: str) -> None:
        assert person.statuses(way) == (200, 200)
        person.site.configure(ENABLE_API_KEYS=False)
        assert person.statuses(way) == (403, 200)
        person.site.configure(ENABLE_API_KEYS=True)
        path = f"{GROUPS}/id/{person.group}/update"
        person.site.call("POST", path, {"permissions": {"features": {"api_keys": False}}}, person.site.admin)
        assert person.statuses(way) == (403, 200)
        person.site.call("POST", path, {"permissions": {"features": {"api_keys": True}}}, person.site.admin)
        assert person.statuses(way) == (200, 200)

    def test_leaving_the_group_ends_the_right(self, person: Person, way: str) -> None:
        path = f"{GROUPS}/id/{person.group}/users/remove"
        person.site.call("POST", path, {"user_ids": [person.user_id]}, person.site.admin)
        assert person.statuses(way) == (403, 200)

    def test_restrictions_hold_for_keys_alone(self, person: Person, way: str) -> None:
        person.site.configure(
            ENABLE_API_KEYS_ENDPOINT_RESTRICTIONS=True,
            API_KEYS_ALLOWED_ENDPOINTS="/api/models,/api/v1/users/",
        )
        assert person.status(person.key, way, "/api/models") == 200
        assert person.status(person.key, way, "/api/models/") == 200
        assert person.status(person.key, way, "/v1/models") == 403
        assert person.status(person.key, way, "/api/v1/users/groups") == 403
        assert person.status(person.key, way, "/api/models/../../v1/models") == 404
        assert person.status(person.session, way, "/v1/models") == 200
        person.site.configure(API_KEYS_ALLOWED_ENDPOINTS="")
        assert person.status(person.key, way, "/api/models") == 403

    def test_pending_and_back(self, person: Person, way: str) -> None:
        path = f"{USERS}/{person.user_id}/update"
        person.site.call("POST", path, {"role": "pending"}, person.site.admin)
        key, session = person.statuses(way)
        assert key in {401, 403}
        assert session == 401
        person.site.call("POST", path, {"role": "user"}, person.site.admin)
        assert person.statuses(way) == (200, 401)

    def test_deactivation(self, person: Person, way: str) -> None:
        done = person.site.daemon.run_ctl("user", "deactivate", person.user_id)
        assert done.returncode == 0, done.stderr
        assert person.statuses(way) == (401, 401)
        person.site.daemon.run_ctl("user", "activate", person.user_id)
        assert person.statuses(way) == (200, 401)

    def test_removal(self, person: Person, way: str) -> None:
        person.site.call("DELETE", f"{USERS}/{person.user_id}", None, person.site.admin)
        assert person.statuses(way) == (401, 401)

    def test_revoked_key(self, person: Person, way: str) -> None:
        (known,) = person.site.call("GET", f"{AUTHS}/api_keys", None, person.session)[1]["keys"]
        assert person.site.call("DELETE", f"{AUTHS}/api_keys/{known['id']}", None, person.session)[0] == 200
        assert person.statuses(way) == (401, 200)

    def test_sign_out_ends_the_session_only(self, person: Person, way: str) -> None:
        assert person.statuses(way) == (200, 200)
        person.site.call("POST", f"{AUTHS}/signout", None, person.session)
        assert person.statuses(way) == (200, 401)

    def test_password_change_ends_sessions(self, person: Person, way: str) -> None:
        form = {"password": PASSWORD, "new_password": "another horse"}
        assert person.site.call("POST", f"{AUTHS}/update/password", form, person.session)[0] == 200
        assert person.statuses(way) == (200, 401)


def test_administrators_need_the_permission_from_a_group_too(site: Site) -> None:
    site.configure(ENABLE_API_KEYS=True)
    admin_id, token = site.add(Role.ADMIN)
    refused, answer = site.call("POST", f"{AUTHS}/api_key", {}, token)
    assert refused == 403
    assert "API key" in answer["detail"]
    site.add_group(admin_id, features={"api_keys": True})
    made, answer = site.call("POST", f"{AUTHS}/api_key", {}, token)
    assert made == 200
    assert answer["api_key"].startswith("sk-")
    site.configure(ENABLE_API_KEYS=False)
    assert site.call("POST", f"{AUTHS}/api_key", {}, token)[0] == 403
    assert site.call("DELETE", f"{AUTHS}/api_key", None, token)[0] == 403


def test_default_permissions_reach_the_role_user_only(site: Site) -> None:
    site.configure(ENABLE_API_KEYS=True)
    default = f"{USERS}/default/permissions"
    site.call("POST", default, {"features": {"api_keys": True}}, site.admin)
    try:
        assert site.call("POST", f"{AUTHS}/api_key", {}, site.add(Role.USER)[1])[0] == 200
        assert site.call("POST", f"{AUTHS}/api_key", {}, site.add(Role.ADMIN)[1])[0] == 403
        assert site.call("POST", f"{AUTHS}/api_key", {}, site.add(Role.PENDING)[1])[0] == 403
    finally:
        site.call("POST", default, {}, site.admin)
        site.configure(ENABLE_API_KEYS=False)


def test_a_key_is_shown_once_and_belongs_to_one_account(site: Site, person: Person) -> None:
    assert site.call("GET", f"{AUTHS}/api_key", None, person.session)[0] == 404
    (known,) = site.call("GET", f"{AUTHS}/api_keys", None, person.session)[1]["keys"]
    assert person.key not in str(known)
    assert site.call("DELETE", f"{AUTHS}/api_keys/{known['id']}", None, site.user)[0] in {403, 404}
    assert site.call("POST", f"{AUTHS}/api_keys", {"name": "second"}, person.session)[0] == 200
    assert site.call("POST", f"{AUTHS}/api_keys", {"name": "second"}, person.session)[0] == 409


def test_an_expired_key_is_refused(site: Site, person: Person) -> None:
    past = {"name": "past", "expires_at": 1}
    assert site.call("POST", f"{AUTHS}/api_keys", past, person.session)[0] in {400, 422}


def test_no_credential_is_in_the_log(site: Site, person: Person) -> None:
    for way in WAYS:
        person.statuses(way)
    site.call("GET", "/api/models", None, person.key + "x")
    log = "".join(site.daemon.log)
    for secret in (person.key, person.session, site.admin, PASSWORD):
        assert secret not in log

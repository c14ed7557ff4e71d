"""Every way of sending a credential, and everything that ends one."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from gatewayd.accounts.records import Role
from tests.fakes.daemons.role_site import AUTHS, GROUPS, PASSWORD, SETTINGS, USERS, Site, opened_roles
from tests.fakes.storage.migrated import NAME

MESSAGE = "message-canary"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened_roles(tmp_path_factory.mktemp("s")) as opened:
        yield opened


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


def stored_secrets(site: Site) -> list[str]:
    """Return the hashes of passwords and the digests of keys that the database holds."""
    with contextlib.closing(sqlite3.connect(site.daemon.state / NAME)) as database:
        hashes = database.execute("SELECT password_hash FROM users WHERE password_hash > ''").fetchall()
        digests = database.execute("SELECT digest FROM api_keys").fetchall()
    assert hashes
    assert digests
    return [str(value) for (value,) in hashes + digests]


def test_no_secret_is_in_the_log_at_debug(site: Site, person: Person) -> None:
    for way in WAYS:
        person.statuses(way)
    site.call("GET", "/api/models", None, person.key + "x")
    node = {"id": "m1", "parentId": None, "childrenIds": [], "role": "user", "content": MESSAGE}
    chat = {"title": "t", "models": ["o.m"], "history": {"messages": {"m1": node}, "currentId": "m1"}}
    assert site.call("POST", "/api/v1/chats/new", {"chat": chat}, person.session)[0] == 200
    assert SETTINGS["GLOBAL_LOG_LEVEL"] == "DEBUG"
    log = "".join(site.daemon.log)
    secrets = [person.key, person.session, site.admin, PASSWORD, MESSAGE, *stored_secrets(site)]
    assert [secret for secret in secrets if secret in log] == []

"""Users, keys and groups of both schemas as records of the gateway."""

import pytest

from gatewayd.accounts.records import Role
from gatewayd.errors import GatewayError
from gatewayd.imports.accounts import check_id, read_group, read_keys, read_user
from gatewayd.imports.rows import ForeignRow
from tests.fakes.storage.open_webui import KEY, hashed, user

NOW = 1_800_000_000


def test_every_column_of_a_user_has_its_place() -> None:
    row = user(
        "u-1",
        " Ann@Example.ORG ",
        "admin",
        name="\u202eAnn",
        username="ann",
        bio="hi",
        timezone="UTC",
        date_of_birth="2000-01-02",
        info={"location": "here"},
        oauth={"google": {"sub": "7"}, "odd": 7, "none": {}},
        scim={"okta": {"external_id": "x"}},
        profile_image_url="/api/v1/users/u-1/profile/image",
        last_active_at=NOW,
    )
    found = read_user(
        ForeignRow(row), ForeignRow({"password": hashed(), "active": 0, "mfa": '{"on": 1}'}), NOW
    )
    account = found.user
    assert (account.email, account.name, account.role, account.active) == (
        "ann@example.org",
        "Ann",
        Role.ADMIN,
        False,
    )
    assert account.profile == {"bio": "hi", "timezone": "UTC", "date_of_birth": "2000-01-02"}
    assert (account.oauth, account.scim) == ({"google": {"sub": "7"}}, {"okta": {"external_id": "x"}})
    assert (account.info, account.username, account.profile_image_url) == (
        {"location": "here"},
        "ann",
        "/user.png",
    )
    assert (account.last_active_at, account.created_at) == (NOW, row["created_at"])
    assert found.changes == ("its second factor is not taken over: the password alone signs in",)


@pytest.mark.parametrize(
    ("columns", "change"),
    [
        ({"username": "a\nb"}, "username"),
        ({"profile_image_url": "javascript:alert(1)"}, "profile_image_url"),
        ({"info": "x" * 10}, "cannot read info"),
        ({"info": {"a": "b" * 300_000}}, "cannot accept info: it is over"),
        ({"name": ""}, "the name is that of its address"),
    ],
)
def test_what_a_user_can_do_without_is_noted(columns: dict[str, object], change: str) -> None:
    found = read_user(ForeignRow(user("u-1", "ann@example.org", **columns)), None, NOW)
    assert change in " ".join(found.changes)
    assert found.user.username is None


@pytest.mark.parametrize("password", ["plain", "$2b$31$" + "a" * 53, "$2b$12$short", ""])
def test_a_hash_that_nobody_checks_is_none(password: str) -> None:
    found = read_user(ForeignRow(user("u-1", "a@b.c")), ForeignRow({"password": password, "active": 1}), NOW)
    assert (found.password_hash, found.user.active) == (None, True)
    assert "has no password" in found.changes[-1]


def test_an_older_subject_is_one_of_its_provider() -> None:
    found = read_user(ForeignRow(user("u-1", "a@b.c", oauth_sub="google@7@8")), None, NOW)
    assert found.user.oauth == {"google": {"sub": "7@8"}}
    assert read_user(ForeignRow(user("u-1", "a@b.c", oauth_sub="7")), None, NOW).user.oauth is None


def test_the_same_key_in_column_and_table_is_one() -> None:
    rows = [ForeignRow({"key": KEY, "last_used_at": NOW}), ForeignRow({"key": "x" * 5000})]
    [key] = read_keys(ForeignRow({"api_key": KEY, "updated_at": NOW}), rows, "u-1", NOW)
    assert (key.user_id, key.last_used_at, key.prefix) == ("u-1", None, KEY[:8])


def test_a_group_keeps_what_it_grants() -> None:
    permissions = {
        "chat": {"delete": True, "edit": False, "new": True},
        "more": {"x": True},
        "features": {"api_keys": False},
    }
    row = {
        "id": "g",
        "name": "Staff",
        "permissions": permissions,
        "user_ids": ["a", 7, "a"],
        "parent_group_id": "p",
    }
    found = read_group(ForeignRow(row), NOW)
    assert (found.group.permissions, found.member_ids) == ({"chat": {"delete": True}}, ("a",))
    assert "groups here have no parents" in found.changes[0]
    odd = read_group(
        ForeignRow({"id": "g", "name": "Staff", "permissions": {"chat": {"edit": 1}}, "data": "[]"}), NOW
    )
    assert (odd.group.permissions, len(odd.changes)) == ({}, 2)


@pytest.mark.parametrize("value", ["", "x" * 65, "a\nb"])
def test_ids_that_cannot_be_ids_here_are_refused(value: str) -> None:
    with pytest.raises(GatewayError, match="cannot use its id"):
        check_id(value)
    with pytest.raises(GatewayError):
        read_group(ForeignRow({"id": value, "name": "Staff"}), NOW)

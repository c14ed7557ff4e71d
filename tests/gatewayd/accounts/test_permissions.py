import pytest

from gatewayd.accounts import permissions as trees
from gatewayd.accounts.change_notifier import AccountChange
from gatewayd.accounts.permissions import BUILTIN_PERMISSIONS
from gatewayd.accounts.records import Actor, CredentialKind, Group, Role, User
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.accounts.services import Accounts

KEYS = {"features": {"api_keys": True}}


def person(role: Role) -> User:
    return User("u1", "ann@example.org", "Ann", role)


def test_the_built_in_tree() -> None:
    assert {section: len(leaves) for section, leaves in BUILTIN_PERMISSIONS.items()} == {
        "workspace": 13,
        "sharing": 16,
        "access_grants": 2,
        "chat": 21,
        "features": 12,
        "settings": 1,
    }
    assert BUILTIN_PERMISSIONS["features"]["api_keys"] is False
    assert BUILTIN_PERMISSIONS["chat"]["temporary_enforced"] is False
    assert not any(BUILTIN_PERMISSIONS["workspace"].values())
    assert all(value for leaf, value in BUILTIN_PERMISSIONS["chat"].items() if leaf != "temporary_enforced")


def test_differences_are_the_leaves_that_are_new_or_otherwise() -> None:
    before = {"features": {"api_keys": False, "notes": True}}
    after = {"features": {"api_keys": True, "notes": True}, "chat": {"edit": False}}
    assert trees.differences(before, after) == {"features.api_keys": True, "chat.edit": False}
    assert trees.differences(after, after) == {}


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (["x"], "expected an object"),
        ({"feature": {}}, "did you mean 'features'"),
        ({"features": {"api_key": True}}, "did you mean 'api_keys'"),
        ({"features": {"api_keys": "yes"}}, "permissions.features.api_keys: expected true or false"),
        ({"features": {"api_keys": 1}}, "expected true or false"),
        ({"features": True}, "permissions.features: expected an object"),
    ],
)
def test_wrong_trees_are_refused_by_name(tree: object, message: str) -> None:
    with pytest.raises(GatewayError, match=message) as caught:
        trees.check(tree)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST


def test_what_other_versions_know_is_dropped() -> None:
    foreign = {"features": {"api_keys": True, "flying": True}, "colours": {"red": True}}
    assert trees.known_leaves(foreign) == KEYS
    with pytest.raises(GatewayError):
        trees.known_leaves({"features": {"api_keys": None}})


def test_merging_only_adds() -> None:
    merged = trees.merge({"chat": {"edit": True, "share": False}}, {"chat": {"edit": False, "share": True}})
    assert merged == {"chat": {"edit": True, "share": True}}


def test_the_role_user_has_the_defaults_and_what_groups_add(accounts: Accounts) -> None:
    permissions = accounts.permissions
    assert permissions.effective_permissions(person(Role.USER), []) == BUILTIN_PERMISSIONS
    granted = permissions.effective_permissions(person(Role.USER), [Group("g", "g", permissions=KEYS)])
    assert granted["features"]["api_keys"] is True
    assert BUILTIN_PERMISSIONS["features"]["api_keys"] is False


async def test_defaults_grant_keys_to_the_role_user_only(accounts: Accounts) -> None:
    permissions = accounts.permissions
    await permissions.set_defaults(KEYS, by="test")
    allowed = {
        role: permissions.effective_permissions(person(role), [])["features"]["api_keys"] for role in Role
    }
    assert allowed == {Role.USER: True, Role.ADMIN: False, Role.PENDING: False}
    by_group = permissions.effective_permissions(person(Role.ADMIN), [Group("g", "g", permissions=KEYS)])
    assert by_group["features"]["api_keys"] is True


def test_administrators_may_everything_else(accounts: Accounts) -> None:
    tree = accounts.permissions.effective_permissions(person(Role.ADMIN), [])
    off = {(section, leaf) for section, leaves in tree.items() for leaf, value in leaves.items() if not value}
    assert off == {("features", "api_keys"), ("chat", "temporary_enforced")}


@pytest.mark.parametrize(
    ("role", "kind", "bypass", "expected"),
    [
        (Role.ADMIN, CredentialKind.KEY, True, True),
        (Role.ADMIN, CredentialKind.KEY, False, False),
        (Role.ADMIN, CredentialKind.CONTROL, False, True),
        (Role.USER, CredentialKind.CONTROL, True, False),
    ],
)
def test_whom_access_lists_do_not_bind(
    role: Role, kind: CredentialKind, bypass: bool, expected: bool
) -> None:
    assert trees.is_exempt(Actor(person(role), kind, (), {}), bypass_admins=bypass) is expected


async def test_stored_defaults_win_over_configured_ones() -> None:
    accounts = Accounts(configured_permissions={"chat": {"edit": False}, **KEYS})
    assert accounts.permissions.defaults()["chat"]["edit"] is False
    stored = await accounts.permissions.set_defaults({"chat": {"edit": True}}, by="test")
    assert stored == accounts.permissions.defaults() == BUILTIN_PERMISSIONS
    assert accounts.heard == [AccountChange(None)]
    again = Accounts(memory=accounts.memory, configured_permissions=KEYS)
    await again.permissions.load()
    assert again.permissions.defaults() == BUILTIN_PERMISSIONS


async def test_configured_defaults_are_fixed_when_nothing_persists() -> None:
    accounts = Accounts(configured_permissions=KEYS, persistent=False)
    with pytest.raises(GatewayError, match=r"features\.api_keys") as caught:
        await accounts.permissions.set_defaults(BUILTIN_PERMISSIONS, by="test")
    assert caught.value.kind is ErrorKind.CONFLICT
    changed = await accounts.permissions.set_defaults({"chat": {"edit": False}, **KEYS}, by="test")
    assert changed["chat"]["edit"] is False


async def test_defaults_do_not_change_in_a_rehearsal(accounts: Accounts) -> None:
    async with accounts.commits.rehearsal():
        shown = await accounts.permissions.set_defaults(KEYS, by="test")
    assert shown["features"]["api_keys"] is True
    assert accounts.permissions.defaults() == BUILTIN_PERMISSIONS
    assert accounts.heard == []


async def test_a_reloaded_configuration_shows_where_nothing_is_stored(accounts: Accounts) -> None:
    accounts.permissions.configure(KEYS)
    assert accounts.permissions.defaults()["features"]["api_keys"] is True
    assert accounts.heard == [AccountChange(None)]
    await accounts.permissions.set_defaults(BUILTIN_PERMISSIONS, by="test")
    accounts.permissions.configure({"chat": {"edit": False}})
    assert accounts.permissions.defaults() == BUILTIN_PERMISSIONS
    assert accounts.permissions.initial()["chat"]["edit"] is False
    with pytest.raises(GatewayError):
        accounts.permissions.configure({"nothing": {}})
    assert accounts.permissions.initial()["chat"]["edit"] is False


async def test_a_required_permission_is_named(accounts: Accounts) -> None:
    actor = await accounts.actor(await accounts.add_user())
    trees.require(actor, "settings", "interface")
    with pytest.raises(GatewayError, match=r"workspace\.tools") as caught:
        trees.require(actor, "workspace", "tools")
    assert caught.value.kind is ErrorKind.FORBIDDEN

"""Who may use and change which plugin."""

import pytest

from gatewayd.accounts.records import Role
from gatewayd.catalog.records import Grant
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.access import PluginAccess, check_admin
from gatewayd.plugins.records import PluginFamily
from tests.fakes.plugins.memory import actor_of, plugin_of, readable_by

ADMIN = actor_of("a", Role.ADMIN)
ADMIN_OF_ALL = actor_of("a", Role.ADMIN, permissions={"workspace": {"tools": True}})
TOOL = plugin_of("t", "class Tools: pass", user_id="owner", grants=readable_by("reader"))
WRITABLE = plugin_of("t", "class Tools: pass", user_id="owner", grants=readable_by("writer", "write"))


@pytest.mark.parametrize(
    ("who", "plugin", "rights"),
    [
        ("owner", TOOL, (True, True)),
        ("reader", TOOL, (True, False)),
        ("writer", WRITABLE, (True, True)),
        ("other", TOOL, (False, False)),
        ("other", plugin_of("f", "class Filter: pass", user_id="other"), (True, False)),
    ],
)
def test_rights_come_from_ownership_and_grants(who: str, plugin: object, rights: object) -> None:
    access, actor = PluginAccess(), actor_of(who)
    assert (access.may_read(actor, plugin), access.may_write(actor, plugin)) == rights  # type: ignore[arg-type]


def test_what_belongs_to_nobody_is_not_of_who_has_no_account() -> None:
    assert not PluginAccess().may_read(actor_of(""), plugin_of("t", "class Tools: pass", user_id=""))


def test_administrators_may_everything_unless_they_are_bound() -> None:
    assert PluginAccess().may_write(ADMIN, TOOL)
    assert not PluginAccess(bypass_admins=False).may_read(ADMIN, TOOL)


def test_groups_count() -> None:
    tool = plugin_of("t", "class Tools: pass", grants=(Grant("group", "g", "read"),))
    assert PluginAccess().may_read(actor_of("x", groups=["g"]), tool)
    assert not PluginAccess().may_read(actor_of("x"), tool)


def test_who_may_not_know_a_tool_does_not_find_it() -> None:
    access = PluginAccess()
    with pytest.raises(GatewayError) as caught:
        access.check_write(actor_of("other"), TOOL)
    assert caught.value.kind is ErrorKind.NOT_FOUND
    with pytest.raises(GatewayError) as caught:
        access.check_write(actor_of("reader"), TOOL)
    assert caught.value.kind is ErrorKind.FORBIDDEN


@pytest.mark.parametrize("leaf", ["tools", "tools_import"])
def test_permissions_let_users_create_tools(leaf: str) -> None:
    actor = actor_of("x", permissions={"workspace": {leaf: True}})
    PluginAccess().check_create(actor, PluginFamily.TOOL)
    with pytest.raises(GatewayError):
        PluginAccess().check_create(actor, PluginFamily.FUNCTION)
    with pytest.raises(GatewayError, match=r"workspace\.tools"):
        PluginAccess().check_create(actor_of("x"), PluginFamily.TOOL)


def test_a_source_is_changed_with_the_permission_alone() -> None:
    access, may = PluginAccess(), {"workspace": {"tools": True}}
    for who in ("owner", "writer"):
        with pytest.raises(GatewayError, match=r"workspace\.tools is missing") as caught:
            access.check_source(actor_of(who, permissions={"workspace": {"tools_import": True}}), WRITABLE)
        assert caught.value.kind is ErrorKind.FORBIDDEN
        access.check_source(actor_of(who, permissions=may), WRITABLE)
    with pytest.raises(GatewayError, match="it belongs to another user"):
        access.check_source(actor_of("reader", permissions=may), TOOL)
    access.check_source(ADMIN_OF_ALL, TOOL)
    access.check_source(ADMIN, plugin_of("f", "class Filter: pass"))


WRITERS = (
    Grant("user", "u2", "write"),
    Grant("group", "g", "write"),
    Grant("user", "*", "write"),
)


def test_write_access_is_given_with_the_permission_alone() -> None:
    sharing = {
        "access_grants": {"allow_users": True, "allow_groups": True},
        "sharing": {"public_tools": True},
    }
    plain = actor_of("owner", permissions=sharing)
    maker = actor_of("owner", permissions={**sharing, "workspace": {"tools": True}})
    reader = Grant("user", "u3", "read")
    access = PluginAccess()
    assert access.granted(plain, [*WRITERS, reader]) == (reader,)
    assert access.granted(maker, [*WRITERS, reader]) == (*WRITERS, reader)
    assert access.granted(ADMIN_OF_ALL, WRITERS) == WRITERS
    # What others gave stays, and is not turned into something wider.
    assert access.granted(plain, [*WRITERS[:1], *WRITERS[1:]], WRITERS[:1]) == WRITERS[:1]
    assert access.granted(plain, [Grant("user", "u3", "write")], [reader]) == ()


def test_only_administrators_pass() -> None:
    check_admin(ADMIN)
    with pytest.raises(GatewayError):
        check_admin(actor_of("x"))

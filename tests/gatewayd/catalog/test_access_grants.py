"""Tests for gatewayd.catalog.access_grants."""

import pytest

from gatewayd.accounts.records import Role
from gatewayd.catalog.access_grants import admits, allowed_grants, covers, is_for, principals_of, render_grant
from gatewayd.catalog.records import Grant
from gatewayd.errors import GatewayError
from tests.fakes.documents.collections import person
from tests.fakes.providers.models import make_actor

PUBLIC = Grant("user", "*", "read")
BOB = Grant("user", "bob", "write")
STAFF = Grant("group", "staff", "read")
KNOWLEDGE, TOOLS = "public_knowledge", "public_tools"


def test_grants_that_an_actor_may_not_give_are_dropped() -> None:
    wanted = (PUBLIC, BOB, STAFF)
    assert allowed_grants(person("ann", permissions={}), wanted, public=KNOWLEDGE) == ()
    may = {"sharing": {"public_knowledge": True}}
    assert allowed_grants(person("ann", permissions=may), wanted, public=KNOWLEDGE) == (PUBLIC,)
    assert allowed_grants(person("ann", permissions=may), wanted, public=TOOLS) == ()
    may = {"access_grants": {"allow_users": True}}
    assert allowed_grants(person("ann", permissions=may), wanted, public=KNOWLEDGE) == (BOB,)
    may = {"access_grants": {"allow_groups": True}}
    assert allowed_grants(person("ann", permissions=may), wanted, public=KNOWLEDGE) == (STAFF,)
    assert allowed_grants(person("root", role=Role.ADMIN, permissions={}), wanted, public=KNOWLEDGE) == wanted


def test_what_is_held_already_may_stay_and_no_more() -> None:
    ann = person("ann", permissions={})
    assert allowed_grants(ann, [PUBLIC, STAFF], held=[PUBLIC, BOB], public=KNOWLEDGE) == (PUBLIC,)


def test_who_may_write_may_read_and_not_the_other_way() -> None:
    bob, sue = person("bob"), person("sue", groups=("staff",))
    assert covers(BOB, bob, "read")
    assert covers(BOB, bob, "write")
    assert covers(STAFF, sue, "read")
    assert not covers(STAFF, sue, "write")
    assert not covers(STAFF, bob, "read")
    assert covers(PUBLIC, sue, "read")
    assert not covers(Grant("group", "bob", "read"), bob, "read")


def test_a_row_twice_is_one() -> None:
    root = person("root", role=Role.ADMIN)
    assert allowed_grants(root, [BOB, STAFF, BOB], public=TOOLS) == (BOB, STAFF)


def test_a_row_of_no_known_form_is_refused_whoever_gives_it() -> None:
    with pytest.raises(GatewayError, match="permission is 'own'") as caught:
        allowed_grants(person("root", role=Role.ADMIN), [Grant("user", "y", "own")], public=TOOLS)
    assert caught.value.param == "access_grants.permission"


def test_a_row_as_clients_see_it() -> None:
    assert render_grant(BOB) == {"principal_type": "user", "principal_id": "bob", "permission": "write"}


def test_principals_admit_as_their_grants_do() -> None:
    grants = [Grant("user", "u9", "read"), Grant("group", "g1", "write"), Grant("user", "g2", "read")]
    for viewer in (make_actor("u9"), make_actor("u1", groups=("g1",)), make_actor("u1", groups=("g2",))):
        expected = any(is_for(grant, viewer) for grant in grants)
        assert admits(principals_of(grants), viewer) == expected
    assert admits(principals_of([Grant("user", "*", "read")]), make_actor("u1"))
    assert not admits(principals_of([Grant("group", "*", "read")]), make_actor("u1"))

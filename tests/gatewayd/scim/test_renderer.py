from dataclasses import replace
from typing import Any

import pytest

from gatewayd.accounts.records import Email, Group, ProviderIdentity, Role, User
from gatewayd.scim.records import GroupEntry, MembershipReference, UserEntry
from gatewayd.scim.renderer import (
    auditable_attributes,
    render_group,
    render_time,
    render_user,
    writable_attributes,
)

BASE = "https://ai.example.org"
SENT = ProviderIdentity(
    "Ada@Example.org",
    "Ada L",
    "Ada Lovelace",
    "Ada",
    "Lovelace",
    (Email("ada@x.org", primary=True), Email("a@home", "home")),
)
ADA = User(
    id="u1",
    email="ada@x.org",
    name="Ada L",
    role=Role.USER,
    scim={"okta": {"external_id": "7"}, "entra": {"external_id": "8"}},
    identity=SENT,
    created_at=1_700_000_000,
    modified_us=1_700_000_001_234_567,
)
STAFF = Group("g1", "Staff", scim={"okta": {"external_id": "9"}}, created_at=1_700_000_000)


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1, "1970-01-01T00:00:00.000001Z"),
        (1_700_000_001_234_567, "2023-11-14T22:13:21.234567Z"),
        (1_700_000_001_200_000, "2023-11-14T22:13:21.200000Z"),
    ],
)
def test_moments_are_exact_and_in_utc(us: int, text: str) -> None:
    assert render_time(us) == text


def test_a_user_with_everything_in_the_order_of_the_rfc() -> None:
    shown = render_user(UserEntry(ADA, [MembershipReference("g1", "Staff")]), "okta", BASE)
    assert shown == {
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
        "id": "u1",
        "externalId": "7",
        "userName": "Ada@Example.org",
        "name": {"formatted": "Ada Lovelace", "familyName": "Lovelace", "givenName": "Ada"},
        "displayName": "Ada L",
        "emails": [
            {"value": "ada@x.org", "type": "work", "primary": True},
            {"value": "a@home", "type": "home", "primary": False},
        ],
        "active": True,
        "groups": [
            {
                "value": "g1",
                "$ref": f"{BASE}/api/v1/scim/v2/Groups/g1",
                "display": "Staff",
                "type": "direct",
            }
        ],
        "meta": {
            "resourceType": "User",
            "created": "2023-11-14T22:13:20Z",
            "lastModified": "2023-11-14T22:13:21.234567Z",
            "location": f"{BASE}/api/v1/scim/v2/Users/u1",
        },
    }
    assert list(shown) == [
        *("schemas", "id", "externalId", "userName", "name", "displayName", "emails"),
        *("active", "groups", "meta"),
    ]


def test_what_a_user_lacks_is_left_out() -> None:
    bare = replace(ADA, identity=ProviderIdentity("ada@x.org"), scim=None)
    shown = render_user(UserEntry(bare), "okta", BASE)
    assert shown.keys() == {"schemas", "id", "userName", "active", "meta"}


def test_a_hand_made_account_shows_what_it_can_tell() -> None:
    shown = render_user(UserEntry(replace(ADA, identity=ProviderIdentity())), "okta", BASE)
    assert shown["userName"] == "ada@x.org"
    assert shown["name"] == {"formatted": "Ada L", "familyName": "L", "givenName": "Ada"}
    assert shown["emails"] == [{"value": "ada@x.org", "type": "work", "primary": True}]


def test_groups_that_were_asked_for_are_there_even_without_any() -> None:
    assert render_user(UserEntry(ADA, ()), "okta", BASE)["groups"] == []
    assert render_group(GroupEntry(STAFF, ()), "okta", BASE)["members"] == []
    assert "members" not in render_group(GroupEntry(STAFF), "okta", BASE)


@pytest.mark.parametrize(("provider", "shown"), [("okta", "7"), ("entra", "8"), ("other", None), ("", None)])
def test_only_the_external_id_of_the_provider_is_shown(provider: str, shown: str | None) -> None:
    assert render_user(UserEntry(ADA), provider, BASE).get("externalId") == shown


@pytest.mark.parametrize("odd", [{"okta": "7"}, {"okta": {"external_id": 7}}, {"okta": {}}, {"": {"a": 1}}])
def test_an_odd_store_shows_nothing(odd: dict[str, Any]) -> None:
    for provider in ("okta", ""):
        assert "externalId" not in render_user(UserEntry(replace(ADA, scim=odd)), provider, BASE)


@pytest.mark.parametrize(
    ("role", "active", "shown"),
    [
        (Role.ADMIN, True, True),
        (Role.USER, False, False),
        (Role.PENDING, True, False),
        (Role.PENDING, False, False),
    ],
)
def test_active_is_an_account_that_may_be_used(role: Role, active: bool, shown: bool) -> None:
    user = replace(ADA, role=role, active=active)
    assert render_user(UserEntry(user), "okta", BASE)["active"] is shown


def test_a_group_with_everything() -> None:
    entry = GroupEntry(
        replace(STAFF, modified_us=1_700_000_000_000_001), [MembershipReference("u1", "Ada L")]
    )
    assert render_group(entry, "okta", BASE) == {
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:Group"],
        "id": "g1",
        "externalId": "9",
        "displayName": "Staff",
        "members": [
            {
                "value": "u1",
                "$ref": f"{BASE}/api/v1/scim/v2/Users/u1",
                "display": "Ada L",
                "type": "User",
            }
        ],
        "meta": {
            "resourceType": "Group",
            "created": "2023-11-14T22:13:20Z",
            "lastModified": "2023-11-14T22:13:20.000001Z",
            "location": f"{BASE}/api/v1/scim/v2/Groups/g1",
        },
    }


def test_without_a_base_nothing_has_an_address() -> None:
    entry = UserEntry(ADA, [MembershipReference("g1", "Staff")])
    shown = render_user(entry, "okta", "")
    assert shown["groups"] == [{"value": "g1", "display": "Staff", "type": "direct"}]
    assert "location" not in shown["meta"]


def test_what_clients_write_and_what_the_audit_notes() -> None:
    shown = render_user(UserEntry(ADA, ()), "okta", BASE)
    assert writable_attributes(shown).keys() == shown.keys() - {"id", "meta", "groups"}
    assert auditable_attributes(shown) == {"id": "u1", **writable_attributes(shown)}
    group = render_group(GroupEntry(STAFF, [MembershipReference("u1", "Ada")]), "okta", BASE)
    assert auditable_attributes(group).keys() == {"schemas", "id", "externalId", "displayName"}

"""Tests for gatewayd.accounts.identity.claims."""

from dataclasses import replace
from typing import Any

import pytest

from gatewayd.accounts.identity.claims import is_complete, read_identity
from gatewayd.accounts.identity.providers import ClaimNames, ProviderOptions
from gatewayd.accounts.identity.records import ExternalIdentity, GroupRules, IdentityRules, RoleRules

MANAGED = IdentityRules(roles=RoleRules(is_managed=True), groups=GroupRules(is_managed=True))
OPTIONS = ProviderOptions("okta", "gateway", rules=MANAGED)


def read(claims: dict[str, Any], userinfo: Any = None, **names: Any) -> ExternalIdentity:
    options = replace(OPTIONS, claims=ClaimNames(**names))
    return read_identity({"sub": "s", **claims}, userinfo or {}, options, "https://okta.example")


@pytest.mark.parametrize(
    ("claims", "name", "roles"),
    [
        ({"roles": ["a", "b", "a"]}, "roles", ("a", "b")),
        ({"roles": " a ,b,,"}, "roles", ("a", "b")),
        ({"realm_access": {"roles": ["a"]}}, "realm_access.roles", ("a",)),
        ({"https://x.example/roles": ["a"]}, "https://x.example/roles", ("a",)),
        ({"a.b": ["whole"], "a": {"b": ["path"]}}, "a.b", ("whole",)),
        ({"roles": []}, "roles", ()),
        ({"roles": None}, "roles", None),
        ({"realm_access": ["roles"]}, "realm_access.roles", None),
        ({}, "roles", None),
    ],
)
def test_roles_by_name_or_path(claims: dict[str, Any], name: str, roles: Any) -> None:
    assert read(claims, roles=name).roles == roles


@pytest.mark.parametrize(
    ("claims", "absent_is_none", "groups"),
    [
        ({"groups": "a;b,c"}, False, ("a", "b,c")),
        ({"groups": ["/team"]}, False, ("/team",)),
        ({}, False, None),
        ({}, True, ()),
        ({"hasgroups": True}, True, None),
        ({"_claim_names": {"groups": "src1"}}, True, None),
        ({"_claim_names": ["groups"]}, True, ()),
    ],
)
def test_groups_that_are_not_known_are_not_none(
    claims: dict[str, Any], absent_is_none: bool, groups: Any
) -> None:
    assert read(claims, absent_groups_are_none=absent_is_none).groups == groups


def test_rules_that_are_off_read_nothing() -> None:
    options = replace(OPTIONS, rules=IdentityRules())
    found = read_identity({"sub": "s", "roles": {"bad": 1}, "groups": 5}, {}, options, "https://okta.example")
    assert (found.roles, found.groups) == (None, None)


def test_other_names_and_numbers_as_subjects() -> None:
    found = read(
        {"sub": "pairwise", "oid": "o-1", "id": 4711, "mail": "a@example.org", "nick": "A"},
        subject="id",
        provisioning="oid",
        email="mail",
        name="nick",
    )
    assert (found.subject, found.provisioning_id, found.email, found.name) == (
        "4711",
        "o-1",
        "a@example.org",
        "A",
    )


def test_the_id_token_comes_before_userinfo() -> None:
    userinfo = {"sub": "s", "email": "u@example.org", "email_verified": True, "name": "U", "roles": ["u"]}
    found = read({"email": "t@example.org", "roles": ["t"]}, userinfo)
    assert (found.email, found.email_verified, found.name, found.roles) == (
        "t@example.org",
        False,
        "U",
        ("t",),
    )
    assert read({}, userinfo).email_verified is True


@pytest.mark.parametrize("missing", ["email", "name", "roles", "groups"])
def test_userinfo_is_asked_for_what_is_missing(missing: str) -> None:
    claims = {"email": "a@example.org", "name": "A", "roles": [], "groups": []}
    assert is_complete(claims, OPTIONS)
    del claims[missing]
    assert not is_complete(claims, OPTIONS)
    if missing in {"roles", "groups"}:
        assert is_complete(claims, replace(OPTIONS, rules=IdentityRules()))
    if missing == "groups":
        assert is_complete({**claims, "hasgroups": True}, OPTIONS)

from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim.projection import Projection
from gatewayd.scim.records import ResourceType

URN = "urn:ietf:params:scim:schemas:core:2.0:User"
ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
ADA: dict[str, Any] = {
    "schemas": [URN],
    "id": "u1",
    "externalId": "7",
    "userName": "ada@x",
    "name": {"familyName": "L", "givenName": "Ada"},
    "emails": [{"value": "ada@x", "type": "work"}, {"value": "a@home", "type": "home"}],
    "active": False,
    "groups": [],
    "meta": {"resourceType": "User", "location": "https://x/u1"},
}


def only(*names: str) -> dict[str, Any]:
    return Projection.read(ResourceType.USER, names, None).apply(ADA)


def without(*names: str) -> dict[str, Any]:
    return Projection.read(ResourceType.USER, None, names).apply(ADA)


def less(*names: str) -> dict[str, Any]:
    return {name: value for name, value in ADA.items() if name not in names}


@pytest.mark.parametrize("names", [None, [], [""], [" , "]])
def test_nothing_asked_for_is_everything(names: list[str] | None) -> None:
    projection = Projection.read(ResourceType.USER, names, names)
    assert projection.apply(ADA) == ADA
    assert not projection.is_asked
    assert projection.wants("groups")


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["userName"], {"userName"}),
        (["USERNAME"], {"userName"}),
        ([f"{URN}:userName"], {"userName"}),
        ([f"{URN.upper()}:USERname", "active"], {"userName", "active"}),
        (["userName,active"], {"userName", "active"}),
        (["userName , active", "groups"], {"userName", "active", "groups"}),
        (["id"], set()),
        (["nothing"], set()),
        (["password"], set()),
        ([f"{ENTERPRISE}:department"], set()),
        ([URN], {"userName", "name", "emails", "active", "groups"}),
        (["name", "name.givenName"], {"name"}),
        (["name.givenName", "name"], {"name"}),
    ],
)
def test_only_what_was_asked_for(names: list[str], shown: set[str]) -> None:
    assert only(*names) == {name: ADA[name] for name in ADA if name in {"schemas", "id"} | shown}


def test_parts_of_attributes() -> None:
    assert only("name.familyName") == {"schemas": [URN], "id": "u1", "name": {"familyName": "L"}}
    assert only("emails.VALUE")["emails"] == [{"value": "ada@x"}, {"value": "a@home"}]
    assert only("emails.type", f"{URN}:emails.value")["emails"] == ADA["emails"]
    assert only("meta.location")["meta"] == {"location": "https://x/u1"}


def test_parts_that_are_not_there_leave_no_empty_shells() -> None:
    assert only("name.formatted", "emails.primary").keys() == {"schemas", "id"}
    assert without("emails.value", "emails.type") == less("emails")


@pytest.mark.parametrize(
    ("names", "hidden"),
    [
        (["userName"], {"userName"}),
        (["USERNAME", f"{URN}:active"], {"userName", "active"}),
        (["emails,name"], {"emails", "name"}),
        (["id", "schemas", "ID", f"{URN}:id"], set()),
        (["nothing"], set()),
        ([f"{ENTERPRISE}:department"], set()),
        (["meta"], {"meta"}),
        ([URN], {"userName", "name", "emails", "active", "groups"}),
    ],
)
def test_everything_but(names: list[str], hidden: set[str]) -> None:
    assert without(*names) == less(*hidden)


def test_everything_but_parts() -> None:
    assert without("name.familyName") == {**ADA, "name": {"givenName": "Ada"}}
    assert without("emails.type")["emails"] == [{"value": "ada@x"}, {"value": "a@home"}]
    assert without("emails.type", "emails") == less("emails")


def test_both_exclude_each_other() -> None:
    with pytest.raises(GatewayError) as caught:
        Projection.read(ResourceType.USER, ["userName"], ["nothing"])
    assert (caught.value.kind, caught.value.code) == (ErrorKind.INVALID_REQUEST, "invalidValue")
    assert not Projection.read(ResourceType.USER, [""], None).is_asked


@pytest.mark.parametrize(
    ("attributes", "excluded", "wanted"),
    [
        (None, None, True),
        (["displayName"], None, False),
        (["Members"], None, True),
        (["members.value"], None, True),
        (["nothing"], None, False),
        (None, ["members"], False),
        (None, ["MEMBERS"], False),
        (None, ["members.display"], True),
        (None, ["members.display", "members"], False),
        (None, ["displayName"], True),
    ],
)
def test_members_are_wanted(attributes: Any, excluded: Any, wanted: bool) -> None:
    projection = Projection.read(ResourceType.GROUP, attributes, excluded)
    assert projection.wants("members") is wanted
    assert projection.wants("id")
    assert projection.is_asked is bool(attributes or excluded)


def test_the_resource_stays_as_it_is() -> None:
    before = repr(ADA)
    only("name.familyName")
    without("emails.type")
    assert repr(ADA) == before

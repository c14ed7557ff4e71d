"""Whatever filter a client can write finds, over HTTP, those of the shown resources that it means."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from gatewayd.accounts.records import Email, Group, ProviderIdentity, Role, User
from gatewayd.scim.filters.resolver import compile_filter, has_external_id_eq, mentions_attribute
from gatewayd.scim.filters.syntax import FilterExpression
from gatewayd.scim.records import GroupEntry, MembershipReference, ResourceType, UserEntry
from tests.clients.scim.gateway import PROVIDER, Gateway
from tests.clients.scim.story import GROUP, USER
from tests.fakes.accounts.scim_conditions import evaluate
from tests.fakes.accounts.scim_filters import MOMENTS, TEXTS, Values, nodes, written

ENDPOINTS = {ResourceType.USER: "/Users", ResourceType.GROUP: "/Groups"}
NAMES = (
    "Ada",
    "ada",
    "ADA LOVELACE",
    "Straße",
    "STRASSE",
    "İpek",
    "100%",
    "a_b",
    "ab",
    "back\\slash",
    "o'Brien",
)
LONGEST_LINE = 4000
PAGE = 150
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Entry = UserEntry | GroupEntry


def populate(gateway: Gateway) -> None:
    """Make two dozen users with odd names and addresses, and a few groups of them."""
    ids = []
    for number in range(24):
        name = NAMES[number % len(NAMES)]
        body: dict[str, Any] = {"schemas": [USER], "userName": f"f{number}@Filtered.example.org"}
        if number % 2:
            body["displayName"] = name
        if number % 3:
            body["name"] = {"givenName": name, "familyName": NAMES[-1 - number % len(NAMES)]}
        if number % 4 == 0:
            body["externalId"] = f"External-{number}"
        if number % 5 == 0:
            body["active"] = False
        if number % 3 == 0:
            work = {"value": f"w{number}@example.org", "type": "work"}
            body["emails"] = [work, {"value": f"h{number}@example.org", "type": "home", "primary": True}]
        reply = gateway.ask("POST", "/Users", body)
        assert reply.status == 201, reply
        ids.append(reply.json["id"])
    for number in range(6):
        members = [{"value": each} for each in ids[number : number * 4]]
        body = {"schemas": [GROUP], "displayName": f"{NAMES[number]} filtered {number}", "members": members}
        assert gateway.ask("POST", "/Groups", body).status == 201


def listed(gateway: Gateway, path: str, text: str | None) -> Iterator[dict[str, Any]]:
    """Yield what is found, page by page; long filters go as a message."""
    start, total = 1, 1
    while start <= total:
        search: dict[str, Any] = {"startIndex": start, "count": PAGE}
        if text is None or len(quote(text)) < LONGEST_LINE:
            asked = "" if text is None else f"&filter={quote(text)}"
            reply = gateway.ask("GET", f"{path}?startIndex={start}&count={PAGE}{asked}")
        else:
            reply = gateway.ask("POST", f"{path}/.search", {**search, "filter": text})
        assert reply.status == 200, (text, reply)
        answer = reply.json
        total = answer["totalResults"]
        start += answer["itemsPerPage"]
        assert answer["itemsPerPage"] or not total, answer
        yield from answer["Resources"]


def user_entry(shown: dict[str, Any]) -> UserEntry:
    """Return the user that a shown one must be."""
    name = shown.get("name", {})
    emails = tuple(Email(each["value"], each["type"], each["primary"]) for each in shown.get("emails", []))
    identity = ProviderIdentity(
        shown["userName"],
        shown.get("displayName"),
        name.get("formatted"),
        name.get("givenName"),
        name.get("familyName"),
        emails,
    )
    user = User(shown["id"], "", "", Role.USER, active=shown["active"], identity=identity, **common(shown))
    groups = [MembershipReference(each["value"], each["display"]) for each in shown.get("groups", [])]
    return UserEntry(user, groups)


def group_entry(shown: dict[str, Any]) -> GroupEntry:
    """Return the group that a shown one must be."""
    members = [MembershipReference(each["value"], each["display"]) for each in shown.get("members", [])]
    return GroupEntry(Group(shown["id"], shown["displayName"], **common(shown)), members)


def common(shown: dict[str, Any]) -> dict[str, Any]:
    """Return what users and groups are told of alike."""
    external_id = shown.get("externalId")
    created, modified = (datetime.fromisoformat(shown["meta"][name]) for name in ("created", "lastModified"))
    return {
        "scim": None if external_id is None else {PROVIDER: {"external_id": external_id}},
        "created_at": (created - EPOCH) // timedelta(seconds=1),
        "modified_us": (modified - EPOCH) // timedelta(microseconds=1),
    }


@pytest.fixture(scope="module")
def population(gateway: Gateway) -> dict[ResourceType, list[Entry]]:
    """Return everything there is, as a client sees it."""
    populate(gateway)
    users = [user_entry(each) for each in listed(gateway, "/Users", None)]
    groups = [group_entry(each) for each in listed(gateway, "/Groups", None)]
    assert len(users) > 24
    assert len(groups) >= 6
    return {ResourceType.USER: list(users), ResourceType.GROUP: list(groups)}


def values(entries: list[Entry]) -> Values:
    """Return what to compare with: often something that is there, or a piece of it."""
    ids = [entry.user.id if isinstance(entry, UserEntry) else entry.group.id for entry in entries[:5]]
    pieces = st.sampled_from(["f1", "@filtered", "EXAMPLE.org", "external-4", "home", "direct", "User", *ids])
    texts: SearchStrategy[str] = st.one_of(st.sampled_from(NAMES), pieces, TEXTS)
    return Values(texts=texts, moments=MOMENTS)


def expected(entries: list[Entry], node: FilterExpression, resource: ResourceType) -> set[str]:
    """Return the ids of what a filter means; looking for external ids in vain, it looks for subjects."""
    condition = compile_filter(node, resource)
    found = {ident(entry) for entry in entries if evaluate(condition, entry, PROVIDER)}
    if not found and resource is ResourceType.USER and has_external_id_eq(condition):
        found = {ident(entry) for entry in entries if evaluate(condition, entry, PROVIDER, by_subject=True)}
    return found


def ident(entry: Entry) -> str:
    """Return the id."""
    return entry.user.id if isinstance(entry, UserEntry) else entry.group.id


@pytest.mark.timeout(300)
@pytest.mark.parametrize("resource", ResourceType)
def test_a_filter_finds_what_it_means(
    gateway: Gateway, population: dict[ResourceType, list[Entry]], resource: ResourceType
) -> None:
    entries = population[resource]

    def is_searchable(node: FilterExpression) -> bool:
        condition = compile_filter(node, resource)
        return not mentions_attribute(condition, "members.display") and not mentions_attribute(
            condition, "roles"
        )

    checks = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

    @settings(max_examples=150, deadline=None, database=None, suppress_health_check=checks)
    @given(nodes(resource, values(entries)).filter(is_searchable), st.integers(0, 2**32))
    def finds(node: FilterExpression, seed: int) -> None:
        found = [each["id"] for each in listed(gateway, ENDPOINTS[resource], written(node, seed))]
        assert len(found) == len(set(found))
        assert set(found) == expected(entries, node, resource)

    finds()


@pytest.mark.parametrize("text", ["members.display pr", 'members[type eq "User" or display sw "A"]'])
def test_what_members_are_called_is_not_searched(gateway: Gateway, text: str) -> None:
    reply = gateway.ask("GET", f"/Groups?filter={quote(text)}")
    assert (reply.status, reply.json["scimType"]) == (400, "invalidFilter")
    assert "members.display" in reply.json["detail"]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('userName sw "F1" and userName ew "@filtered.EXAMPLE.org"', 11),
        ('userName ew "@filtered.example.org" and not (active eq true)', 5),
        ('emails[type eq "home" and primary eq true].value sw "h" and externalId pr', 2),
        ('name.givenName eq "STRASSE" and userName ew "@filtered.example.org"', 2),
        ('displayName co "%" and userName ew "@filtered.example.org"', 2),
        ('displayName co "_" and userName ew "@filtered.example.org"', 2),
    ],
)
@pytest.mark.usefixtures("population")
def test_some_filters_by_hand(gateway: Gateway, text: str, count: int) -> None:
    """What the generated filters must find is computed; here it is counted."""
    assert len(list(listed(gateway, "/Users", text))) == count

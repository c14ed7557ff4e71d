"""gatewayd-scim(7) is complete and true: its rows are tried, the names that the code knows are in it."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from gatewayd.errors import ErrorKind
from gatewayd.http.errors import CODE_STATUSES, SCIM_STATUSES, SCIM_TYPES, STATUSES
from gatewayd.http.public.scim.discovery import ScimDiscoveryRoutes
from gatewayd.http.public.scim.messages import MAX_BODY_BYTES, MEDIA_TYPES, PARAMETERS
from gatewayd.http.public.scim.routes import ScimGroupRoutes, ScimUserRoutes
from gatewayd.scim import groups, request_log
from gatewayd.scim.attributes import SCHEMAS, Mutability, QualifiedAttribute, attributes_by_path
from gatewayd.scim.filters import list_query
from gatewayd.scim.filters.conditions import Operator
from gatewayd.scim.records import ResourceType
from gatewayd.scim.renderer import ROOT
from gatewayd.scim.tokens import file as tokens_file
from gatewayd.settings import definitions
from tests.clients.scim.gateway import opened_gateway
from tests.fakes.accounts.provisioning import Provisioning
from tests.fakes.accounts.scim_trials import ERRORS, GROUP, NUMBERS, PERSON, TRIALS, USER, Site
from tests.suite.manual_tables import rows

TOP = Path(__file__).parents[1]
PAGE = (TOP / "man" / "gatewayd-scim.7").read_text()
COMMANDS = (TOP / "man" / "gatewayctl.1").read_text().replace(r"\-", "-")
SOURCES = [
    *(TOP / "gatewayd" / "scim").glob("*.py"),
    *(TOP / "gatewayd" / "http" / "public").glob("scim*.py"),
    *(TOP / "gatewayd" / "storage").glob("conditions.py"),
    TOP / "gatewayd" / "http" / "body.py",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("s")
    with (
        opened_gateway(folder / "one") as gateway,
        opened_gateway(folder / "two", SCIM_AUTH_PROVIDER="") as unset,
    ):
        user = gateway.ask("POST", "/Users", PERSON).json["id"]
        members = [{"value": user, "display": "Countess"}]
        body = {"displayName": "Analysts", "externalId": "Group-1", "members": members}
        group = gateway.ask("POST", "/Groups", body).json["id"]
        yield Site(gateway, unset, {USER: user, GROUP: group})


def plain(source: str) -> str:
    """Return mdoc source as one line of text, without macros and escapes."""
    text = re.sub(r"(?m)^\.\\\".*$", "", source)
    text = re.sub(r"(?m)^\.(?:[A-Z][a-z]) ", "", text).replace("\\(dq", '"')
    return re.sub(r" ([,.;:)])", r"\1", " ".join(text.split()))


TEXT = plain(PAGE)
WORDS = set(re.findall(r"[A-Za-z/$][\w./$+-]*\w", TEXT))


def missing(names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name not in WORDS)


# Endpoints ------------------------------------------------------------------------------------------------


def served() -> list[tuple[str, str]]:
    scim = Provisioning()
    made = [
        *ScimUserRoutes(scim.users, "").routes(),
        *ScimGroupRoutes(scim.groups, "").routes(),
        *ScimDiscoveryRoutes().routes(),
    ]
    return [(row.method, row.path.removeprefix(ROOT)) for row in made]


def test_every_endpoint_is_in_the_page(site: Site) -> None:
    listed = {
        (method, path) for path, methods, _ in rows(PAGE, "endpoints") for method in methods.split(", ")
    }
    refused = set(served()) - listed
    assert listed <= set(served())
    for method, path in refused:
        assert site.ask(method, path, {} if method in {"POST", "PUT", "PATCH"} else None).status == 501
    assert missing({path for _, path in refused if path}) == []
    assert ROOT in TEXT
    assert missing(MEDIA_TYPES) == []


# Attributes -----------------------------------------------------------------------------------------------


def leaves(resource: ResourceType) -> list[QualifiedAttribute]:
    return [place for place in attributes_by_path(resource).values() if not place.attribute.parts]


def value_of(resource: Any, name: str) -> Any:
    for part in name.split("."):
        resource = resource[part]
        resource = resource[0] if isinstance(resource, list) else resource
    return resource


def searched(site: Site, resource: ResourceType, place: QualifiedAttribute) -> str:
    """Return how the value that is shown can be searched for."""
    value = value_of(site.shown(resource), place.name)

    def finds(said: Any) -> bool:
        reply = site.search(resource, f"{place.name} eq {json.dumps(said)}")
        assert reply.status == 200, reply
        return site.ids[resource] in [each["id"] for each in reply.json["Resources"]]

    if site.search(resource, f"{place.name} eq {json.dumps(value)}").status == 400:
        return "-"
    assert finds(value)
    if not isinstance(value, str):
        return "boolean"
    if place.attribute.kind == "dateTime":
        assert finds(value.replace("Z", "+00:00"))
        return "time"
    return "any case" if finds(value.swapcase()) else "exact"


def sorts(site: Site, resource: ResourceType, place: QualifiedAttribute) -> str:
    query = urlencode({"sortBy": place.name})
    status = site.ask("GET", f"{SCHEMAS[resource].endpoint}?{query}").status
    assert status in {200, 400}
    return "yes" if status == 200 else "-"


def written_by(site: Site, resource: ResourceType, place: QualifiedAttribute) -> str:
    """Return who writes an attribute, for which its own value is written once more."""
    path, value = place.name, value_of(site.shown(resource), place.name)
    once = place.attribute.mutability is Mutability.IMMUTABLE
    if once:
        path = path.replace(".", '[type eq "User"].')
    reply = site.patch(resource, {"op": "replace", "path": path, "value": value})
    if reply.status == 400:
        assert reply.json["scimType"] == "mutability"
        return "provider, once" if once else "gateway"
    assert reply.status in {200, 204}
    # To put another member in the place of one is to add and to remove a whole one.
    return "provider, once" if place.name == "members.value" else "provider"


@pytest.mark.parametrize("resource", ResourceType)
def test_every_attribute_has_a_true_row(site: Site, resource: ResourceType) -> None:
    tried = [
        [
            place.name,
            place.attribute.kind.value,
            searched(site, resource, place),
            sorts(site, resource, place),
            written_by(site, resource, place),
        ]
        for place in leaves(resource)
    ]
    assert rows(PAGE, resource.value) == tried


def test_a_whole_attribute_stands_for_its_value(site: Site) -> None:
    for resource, name in ((USER, "emails"), (USER, "groups"), (GROUP, "members")):
        value = value_of(site.shown(resource), f"{name}.value")
        assert site.search(resource, f'{name} eq "{value}"').json["totalResults"] == 1
    assert site.ask("GET", "/Users?sortBy=emails").status == 200
    assert [site.ask("GET", path).status for path in ("/Users?sortBy=groups", "/Groups?sortBy=members")] == [
        400,
        400,
    ]


# Filters --------------------------------------------------------------------------------------------------

LITERALS = {"displayName": '"x"', "active": "true", "meta.created": '"2026-11-21T10:00:00Z"'}


def test_every_operator_has_a_true_row(site: Site) -> None:
    assert {name for name, *_ in rows(PAGE, "operators")} == {*Operator, "pr"}
    for name, *said, _ in rows(PAGE, "operators"):
        tried = []
        for attribute, literal in LITERALS.items():
            text = f"{attribute} pr" if name == "pr" else f"{attribute} {name} {literal}"
            status = site.search(USER, text).status
            assert status in {200, 400}
            tried.append("yes" if status == 200 else "-")
        assert said == tried, name


def test_the_filters_of_the_page_are_understood(site: Site) -> None:
    section = PAGE.partition(".Ss Filters")[2].partition(".Ss ")[0]
    examples = re.findall(r"(?m)^\.Li (emails\[.+)$", section)
    assert len(examples) == 2
    for example in examples:
        text = example.replace("\\(dq", '"').replace("@example.org", "@EXAMPLE.org")
        assert site.search(USER, text).json["totalResults"] > 0


def test_put_replaces_what_the_page_says(site: Site) -> None:
    number = next(NUMBERS)
    mail = {"value": f"put{number}@example.org"}
    given = {**PERSON, "userName": mail["value"], "emails": [mail], "externalId": f"put-{number}"}
    made = site.ask("POST", "/Users", given).json
    bare = {"userName": f"bare{number}@example.org"}
    kept = site.ask("PUT", f"/Users/{made['id']}", bare).json
    said = re.search(r"(?s)PUT replaces\n(.+?)\.\nAn\n(.+?)\nthat is absent", PAGE)
    assert said
    replaced, absent = (re.findall(r"\.Ic (\w+)", part) for part in said.groups())
    assert {name for name in PERSON if kept.get(name) != made[name]} == set(replaced)
    assert {name for name in PERSON if kept.get(name) == made[name]} == set(absent) - {"members"}


# Limits ---------------------------------------------------------------------------------------------------

COUNTS = {
    "resources of a list, count": list_query.MAX_COUNT,
    "resources of a list without count": list_query.DEFAULT_COUNT,
    "members of a list of groups": groups.MAX_LISTED_MEMBERS,
    "comparisons with members of a message": groups.MAX_MEMBER_COMPARISONS,
    "tokens": tokens_file.MAX_TOKENS,
}


def test_every_limit_is_in_the_page() -> None:
    known = {label: most for label, (most, _) in TRIALS.items()} | COUNTS
    assert {label: int(most) for label, most in rows(PAGE, "limits")} == known


@pytest.mark.parametrize("label", TRIALS)
def test_a_limit_is_what_the_page_says(site: Site, label: str) -> None:
    most, trial = TRIALS[label]
    kept = trial(site, most)
    assert kept.status < 300, kept
    refused = trial(site, most + 1)
    assert refused.status in {400, 413}, refused


def test_a_page_has_as_many_resources_as_the_page_says(site: Site) -> None:
    for _ in range(list_query.MAX_COUNT):
        assert site.ask("POST", "/Groups", {"displayName": f"Group {next(NUMBERS)}"}).status == 201
    for query, most in (("", list_query.DEFAULT_COUNT), ("?count=100000", list_query.MAX_COUNT)):
        assert site.ask("GET", f"/Groups{query}").json["itemsPerPage"] == most
    said = f"count is {list_query.DEFAULT_COUNT} unless sent, and {list_query.MAX_COUNT} at most"
    assert said in TEXT
    assert f"at most {MAX_BODY_BYTES // 2**20} MiB" in TEXT
    assert f"rather than to have more than {groups.MAX_LISTED_MEMBERS} members" in TEXT
    assert f"each of the last {request_log.MAX_LOGGED_REQUESTS} requests" in TEXT
    assert missing(set(PARAMETERS.values()) - {"filter"}) == []


# Errors ---------------------------------------------------------------------------------------------------


# No row of SCIM has a key of repetitions, nor a WebSocket.
FOREIGN_CODES = {"idempotency_key_reused", "websocket_unsupported"}


def test_every_error_is_in_the_page() -> None:
    assert [(status, scim_type) for status, scim_type, _ in rows(PAGE, "errors")] == list(ERRORS)
    raised = "".join(path.read_text() for path in SOURCES)
    codes = set(re.findall(r'code="(\w+)"', raised)) | SCIM_STATUSES.keys()
    types = {SCIM_TYPES[code] for code in codes if code in SCIM_TYPES}
    assert types <= {scim_type for _, scim_type in ERRORS}
    kinds = {
        ErrorKind[name]
        for name in re.findall(r"\bKind\.([A-Z_]+)\b(?!\.)", raised)
        if name in ErrorKind.__members__
    }
    statuses = {STATUSES[kind][0] for kind in kinds} | set(SCIM_STATUSES.values())
    statuses |= {CODE_STATUSES[code] for code in CODE_STATUSES.keys() - SCIM_STATUSES.keys() - FOREIGN_CODES}
    assert statuses <= {int(status) for status, _ in ERRORS}


@pytest.mark.parametrize(("status", "scim_type"), ERRORS)
def test_an_error_comes_as_the_page_says(site: Site, status: str, scim_type: str) -> None:
    for trial in ERRORS[status, scim_type]:
        reply = trial(site)
        assert (str(reply.status), reply.json.get("scimType", "-")) == (status, scim_type), reply
        assert reply.json["status"] == status


# Names ----------------------------------------------------------------------------------------------------


def test_settings_and_commands_that_the_page_names_exist() -> None:
    named = set(re.findall(r"\b(?:scim_\w+|trusted_proxies)\b", TEXT))
    assert {name for name in definitions() if name.startswith("scim_")} <= named <= set(definitions())
    commands = re.findall(r"(?m)^(?:\.Cm|#) gatewayctl ([a-z-]+(?: [a-z]+)?)", PAGE)
    assert len(commands) > 8
    for command in commands:
        assert re.search(rf"(?m)^\.(?:Cm|Ss) {command}\b", COMMANDS), command

"""Requests at and beyond each limit of provisioning, and for each of its errors."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any
from urllib.parse import quote

from gatewayd.accounts.texts import MAX_EMAIL, MAX_NAME
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.errors import render
from gatewayd.http.public.scim.messages import MAX_BODY_BYTES
from gatewayd.http.routes import RouteDialect
from gatewayd.scim import parser as scim_parser
from gatewayd.scim import projection, roles, values
from gatewayd.scim.attributes import SCHEMAS
from gatewayd.scim.filters import grammar
from gatewayd.scim.patch import members as patch_members
from gatewayd.scim.patch import steps as patch_steps
from gatewayd.scim.records import ResourceType
from gatewayd.scim.renderer import ROOT
from tests.clients.scim.gateway import TOKEN, Gateway
from tests.fakes.http.raw_http import Reply, send

USER, GROUP = ResourceType.USER, ResourceType.GROUP

PERSON = {
    "userName": "Ada@example.org",
    "externalId": "Person-1",
    "name": {"formatted": "Ada Lovelace", "familyName": "Lovelace", "givenName": "Ada"},
    "displayName": "Ada L.",
    "emails": [{"value": "Ada@example.org", "type": "work", "primary": True}],
    "roles": [{"value": "admin", "display": "Administrator", "type": "direct", "primary": True}],
    "active": True,
}


@dataclass(frozen=True)
class Site:
    """A running gateway with one whole user in one whole group, and another one without a provider."""

    gateway: Gateway
    unset: Gateway
    ids: Mapping[ResourceType, str]

    def ask(self, method: str, path: str, body: Any = None) -> Reply:
        return self.gateway.ask(method, path, body)

    def patch(self, resource: ResourceType, *operations: Mapping[str, Any]) -> Reply:
        path = f"{SCHEMAS[resource].endpoint}/{self.ids[resource]}"
        return self.ask("PATCH", path, {"Operations": list(operations)})

    def search(self, resource: ResourceType, text: str) -> Reply:
        return self.ask("POST", f"{SCHEMAS[resource].endpoint}/.search", {"filter": text})

    def shown(self, resource: ResourceType) -> Any:
        return self.ask("GET", f"{SCHEMAS[resource].endpoint}/{self.ids[resource]}").json


NUMBERS = count()


def person(**more: Any) -> dict[str, Any]:
    return {"userName": f"user{next(NUMBERS)}@example.org", **more}


def raw(site: Site, body: bytes, media_type: str = "application/scim+json") -> Reply:
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": media_type}
    return send(site.gateway.url, "POST", f"{ROOT}/Users", body, headers)


def padded(site: Site, size: int) -> Reply:
    body = json.dumps(person(title=""))
    return raw(site, f"{body[:-2]}{'x' * (size - len(body))}{body[-2:]}".encode())


def address(size: int) -> str:
    """Return an e-mail address of so many characters, in parts as RFC 5321 allows them."""
    domain = ("b" * 50 + ".") * 6
    return f"{'a' * 60}@{domain[: size - 68]}bbb.org"


def named(site: Site, size: int) -> Reply:
    return site.ask("POST", "/Users", person(userName=address(size)))


def long_filter(site: Site, size: int) -> Reply:
    return site.search(USER, f'userName eq "{"a" * (size - len("userName eq ..."))}ab"'[: size - 1] + '"')


def many_paths(site: Site, size: int) -> Reply:
    sizes = [8192] * (size // 8192) + [size % 8192] * bool(size % 8192)
    paths = [f'emails[value eq "{"a" * (each - 19)}"]' if each > 19 else "x" * each for each in sizes]
    return site.patch(USER, *({"op": "remove", "path": path} for path in paths))


def many_members(site: Site, size: int) -> Reply:
    ids = [site.ids[USER], *(f"nobody-{number}" for number in range(size - 1))]
    value = [{"value": each} for each in ids]
    return site.patch(GROUP, {"op": "add", "path": "members", "value": value})


def many_filters(site: Site, size: int) -> Reply:
    operation = {"op": "remove", "path": 'members[type eq "Nobody"]'}
    return site.patch(GROUP, *([operation] * size))


def many_changes(site: Site, size: int) -> Reply:
    member = {"path": "members", "value": [{"value": site.ids[USER]}]}
    some = {"op": "remove", "path": 'members[type eq "Nobody"]'}
    operations = [{"op": "remove", **member}, {"op": "add", **member}, some]
    return site.patch(GROUP, *(operations[number % 3] for number in range(size)))


def many_emails(site: Site, size: int) -> Reply:
    emails = [{"value": f"{number}@example.org"} for number in range(size)]
    return site.ask("POST", "/Users", person(emails=emails))


Trial = Callable[[Site, int], Reply]
TRIALS: Mapping[str, tuple[int, Trial]] = {
    "bytes of a body": (MAX_BODY_BYTES, padded),
    "characters of a filter or path": (grammar.MAX_TEXT_CHARACTERS, long_filter),
    "comparisons of a filter": (
        grammar.MAX_COMPARISONS,
        lambda site, size: site.search(USER, " or ".join(["id pr"] * size)),
    ),
    "nested parentheses": (
        grammar.MAX_DEPTH,
        lambda site, size: site.search(USER, f"{'(' * size}id pr{')' * size}"),
    ),
    "nested operators": (
        grammar.MAX_OPERATORS,
        lambda site, size: site.search(USER, f"{'not (' * size}id pr{')' * size}"),
    ),
    "operations of a message": (
        scim_parser.MAX_OPERATIONS,
        lambda site, size: site.patch(USER, *([{"op": "add", "path": "title", "value": ""}] * size)),
    ),
    "characters of the paths of a message": (patch_steps.MAX_PATHS, many_paths),
    "members of a message": (values.MAX_MEMBERS, many_members),
    "filters on members of a message": (patch_members.MAX_FILTERS, many_filters),
    "changes of members of a message": (patch_members.MAX_CHANGES, many_changes),
    "attributes of a message": (
        values.MAX_ATTRIBUTES,
        lambda site, size: site.ask("POST", "/Users", person(**{f"x{n}": 1 for n in range(size - 1)})),
    ),
    "characters of the names of attributes to show": (
        projection.MAX_CHARACTERS,
        lambda site, size: site.ask("POST", "/Users/.search", {"attributes": ["n" * (size - 1)]}),
    ),
    "e-mail addresses of a user": (values.MAX_EMAILS, many_emails),
    "characters of an e-mail address or user name": (MAX_EMAIL, named),
    "characters of a name": (
        MAX_NAME,
        lambda site, size: site.ask("POST", "/Users", person(displayName="n" * size)),
    ),
    "characters of the type of an e-mail address": (
        values.MAX_TYPE_CHARACTERS,
        lambda site, size: site.ask(
            "POST", "/Users", person(emails=[{"value": f"{size}@example.net", "type": "t" * size}])
        ),
    ),
    "characters of an external id": (
        values.MAX_EXTERNAL_ID_CHARACTERS,
        lambda site, size: site.ask("POST", "/Users", person(externalId="e" * size)),
    ),
    "roles of a user": (
        roles.MAX_ROLES,
        lambda site, size: site.ask("POST", "/Users", person(roles=[str(n) for n in range(size)])),
    ),
    "characters of a role": (
        roles.MAX_ROLE_CHARACTERS,
        lambda site, size: site.ask("POST", "/Users", person(roles=["r" * size])),
    ),
}


def told(error: GatewayError) -> Reply:
    """Return the answer to a failure that no request brings about at will."""
    reply = render(error, RouteDialect.SCIM)
    assert isinstance(reply.body, bytes)
    return Reply(reply.status, {}, reply.body)


def changed(site: Site, path: str | None, **more: Any) -> Reply:
    operation = {"op": "replace", "value": "x", **({"path": path} if path else {}), **more}
    return site.patch(USER, operation)


Error = tuple[str, str]
ERRORS: Mapping[Error, Sequence[Callable[[Site], Reply]]] = {
    ("400", "invalidFilter"): (
        lambda site: site.search(USER, "userName eq"),
        lambda site: site.search(USER, 'nickName eq "x"'),
        lambda site: site.search(USER, 'meta.location eq "x"'),
    ),
    ("400", "invalidSyntax"): (
        lambda site: raw(site, b"{"),
        lambda site: raw(site, b"[]"),
        lambda site: site.ask("POST", "/Users", person(schemas=["urn:x"])),
    ),
    ("400", "invalidValue"): (
        lambda site: site.ask("POST", "/Users", {"userName": "no address"}),
        lambda site: site.ask("GET", "/Users?startIndex=x"),
    ),
    ("400", "invalidPath"): (
        lambda site: changed(site, "emails["),
        lambda site: changed(site, "shoeSize"),
    ),
    ("400", "noTarget"): (lambda site: changed(site, 'emails[value co "nobody"].type'),),
    ("400", "mutability"): (lambda site: changed(site, "id"),),
    ("401", "-"): (
        lambda site: send(site.gateway.url, "GET", f"{ROOT}/Users"),
        lambda site: send(site.gateway.url, "GET", f"{ROOT}/Users", headers={"Authorization": "Bearer x"}),
    ),
    ("403", "-"): (
        lambda site: site.ask("DELETE", f"/Users/{site.gateway.administrator}"),
        lambda site: site.ask("GET", "/Schemas?filter=id+pr"),
    ),
    ("404", "-"): (
        lambda site: site.ask("GET", "/Users/nobody"),
        lambda site: site.ask("GET", "/Groups/nothing"),
        lambda site: site.ask("GET", "/Shoes"),
    ),
    ("405", "-"): (lambda site: site.ask("DELETE", "/Users"),),
    ("408", "-"): (lambda _: told(GatewayError(ErrorKind.INVALID_REQUEST, "cannot", code="body_timeout")),),
    ("409", "uniqueness"): (
        lambda site: site.ask("POST", "/Users", {"userName": PERSON["userName"]}),
        lambda site: site.ask("POST", "/Users", person(emails=[PERSON["userName"]])),
        lambda site: site.ask("POST", "/Users", person(externalId=PERSON["externalId"])),
        lambda site: site.ask("POST", "/Groups", {"displayName": "ANALYSTS"}),
    ),
    ("413", "-"): (lambda site: padded(site, MAX_BODY_BYTES + 1),),
    ("413", "tooMany"): tuple(
        lambda site, label=label: TRIALS[label][1](site, TRIALS[label][0] + 1)
        for label in (
            "members of a message",
            "operations of a message",
            "e-mail addresses of a user",
            "characters of the paths of a message",
            "filters on members of a message",
            "changes of members of a message",
            "attributes of a message",
            "roles of a user",
            "characters of the names of attributes to show",
        )
    ),
    ("415", "-"): (lambda site: raw(site, b"{}", "text/plain"),),
    ("500", "-"): (
        lambda site: site.unset.ask("POST", "/Users", person(externalId="x")),
        lambda site: site.unset.ask("GET", f"/Users?filter={quote('externalId pr')}"),
    ),
    ("501", "-"): tuple(
        lambda site, path=path: site.ask("POST", path, {}) for path in ("/Bulk", "/Me", "/.search")
    ),
    ("503", "-"): (lambda _: told(GatewayError(ErrorKind.UNAVAILABLE, "cannot", retry_after=2)),),
}

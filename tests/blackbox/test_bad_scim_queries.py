"""Paths, filters and parameters of identity providers that cannot be: the right SCIM error, in time."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.fakes.daemons.bad_provisioning_site import ROOT, Site, opened_provoked
from tests.fakes.http.raw_http import exchange

NOUNS = ("/Users", "/Groups")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened_provoked(tmp_path_factory.mktemp("s")) as opened:
        opened.add_group(opened.add_user(displayName="100% Ä_b \\ 'x' \"y\""))
        yield opened


IDS = (
    "none", "00000000-0000-4000-8000-000000000000", "1", "-1", "%20", "%25", "100%25", "a" * 7000,
    "%F0%9F%99%82", "%ff", "%C0%AE", "%ED%A0%80", "%", "%zz", "a%0d%0aX-Evil:%201", "%E2%80%AE",
    "%3Cscript%3E", "';--", "{id}", "*", "%2e%2e", "%00", "a%00b",
    "a%2Fb", "%2F", "a%5cb", "..%2f..%2fhealth", ".search", "me", "$ref", "%22x%22",
)  # fmt: skip


@pytest.mark.parametrize("noun", [*NOUNS, "/Schemas", "/ResourceTypes"])
@pytest.mark.parametrize("name", IDS, ids=lambda name: name[:20])
def test_odd_ids_are_not_found(site: Site, noun: str, name: str) -> None:
    bodies: dict[str, Any] = {"GET": None, "DELETE": None}
    if noun in NOUNS:
        bodies["PUT"] = {"userName": "a@b.org", "displayName": "x"}
        bodies["PATCH"] = {"Operations": [{"op": "replace", "path": "displayName", "value": "x"}]}
    for method, body in bodies.items():
        reply = site.ask(method, f"{noun}/{name}", body)
        assert reply.status == 404 or (reply.status == 405 and noun not in NOUNS), (method, reply)
        assert "x-evil" not in reply.headers
        assert len(reply.body) < 2048


MALFORMED: dict[str, str] = {
    "nothing": "",
    "blanks": "   ",
    "no operator": "userName",
    "no value": "userName eq",
    "no attribute": 'eq "x"',
    "no quotes": "userName eq x",
    "single quotes": "userName eq 'x'",
    "an open quote": 'userName eq "x',
    "an unknown operator": 'userName is "x"',
    "two operators": 'userName eq eq "x"',
    "and without a right": 'userName eq "x" and',
    "two values": 'userName eq "x" "y"',
    "an open parenthesis": '(userName eq "x"',
    "a closing parenthesis": 'userName eq "x")',
    "empty parentheses": "()",
    "an open bracket": 'emails[type eq "work"',
    "empty brackets": "emails[]",
    "brackets on a text": 'userName[type eq "work"]',
    "an unknown attribute": 'favouriteColour eq "red"',
    "an attribute of another type": 'members eq "x"',
    "a password": 'password eq "x"',
    "an unknown part": 'name.unknown eq "x"',
    "an unknown URN": 'urn:example:x:userName eq "x"',
    "a number for a text": "userName eq 5",
    "a flag for a text": "userName eq true",
    "an object": 'userName eq {"a": 1}',
    "a list": 'userName eq ["a"]',
    "a word for a flag": 'active eq "perhaps"',
    "an order of flags": "active gt true",
    "a part of a flag": 'active co "tru"',
    "no date": 'meta.created gt "yesterday"',
    "a date that is none": 'meta.created gt "2026-02-30T00:00:00Z"',
    "a year without end": 'meta.created gt "99999-01-01T00:00:00Z"',
    "a lone surrogate": 'userName eq "\\ud800"',
    "half an escape": 'userName eq "\\u12"',
    "an unknown escape": 'userName eq "\\x"',
    "a NUL escape": 'userName eq "\\u0000"',
    "a NUL": 'userName eq "\x00"',
    "a comment": 'userName eq "x" -- ',
    "SQL": "1=1; DROP TABLE users",
    "XPath": "//user[@name='x']",
    "5000 parentheses": "(" * 5000 + 'userName eq "x"' + ")" * 5000,
    "2000 nots": "not (" * 2000 + "active eq true" + ")" * 2000,
    "5000 brackets": "emails[" * 1000 + "value pr" + "]" * 1000,
    "only parentheses": "(" * 8000,
    "33 parentheses": "(" * 60 + "active eq true" + ")" * 60,
    "1000 comparisons": " and ".join(["active pr"] * 700),
    "9 kB of text": f'userName eq "{"a" * 9000}"',
    "a number of 5000 digits": f"userName eq {'9' * 5000}",
    "8 kB of blanks": "userName" + " " * 8000 + "eq",
    "8 kB of one word": "a" * 8000,
    "8 kB of dots": "a." * 4000,
    "8 kB of quotes": '"' * 8000,
    "8 kB of backslashes": 'userName eq "' + "\\" * 8000,
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_filter_is_refused(site: Site, text: str) -> None:
    reply = site.found(text)
    assert (reply.status, reply.json["scimType"]) == (400, "invalidFilter"), reply
    assert "filter" in reply.json["detail"]


@pytest.mark.parametrize("size", [60_000, 64 * 1024, 1_000_000, 4_000_000])
@pytest.mark.parametrize("piece", ["(", "not (", '"', "\\", "a ", "userName eq 1 or ", "emails[", "🙂"])
def test_a_filter_of_any_length_is_refused_in_time(site: Site, size: int, piece: str) -> None:
    text = (piece * size)[:size].encode()[:size].decode(errors="ignore")
    for noun in NOUNS:
        reply = site.ask("POST", f"{noun}/.search", {"filter": text})
        assert reply.status == 413 or reply.json["scimType"] == "invalidFilter", reply


def test_a_filter_that_does_not_fit_into_the_head_is_refused(site: Site) -> None:
    path = f"{ROOT}/Users?filter={quote('userName eq ' + 'a' * 65536)}"
    (reply,) = exchange(site.daemon.base_url, f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    assert reply.status == 400
    assert "too long" in reply.json["detail"]
    assert site.ask("GET", "/Users?count=0").status == 200


HARMLESS: dict[str, str] = {
    "a quote": 'displayName eq "\\""',
    "SQL": """displayName eq "' OR '1'='1" """,
    "a percent": 'displayName co "%"',
    "a wildcard": 'userName co "_%_"',
    "unicode": 'displayName eq "Ä🙂\u202e\u2028"',
    "an escaped pair": 'displayName eq "\\ud83d\\ude42"',
    "in another case": 'USERNAME EQ "NOBODY@EXAMPLE.ORG"',
    "many parentheses": "(" * 20 + 'userName eq "x"' + ")" * 20,
    "an empty text": 'userName eq ""',
    "null": "userName eq null",
    "a text of 7 kB": f'userName eq "{"a" * 7000}"',
    "an old date": 'meta.created lt "0001-01-01T00:00:00Z"',
    "a late date": 'meta.created gt "9999-12-31T23:59:59.999999Z"',
}


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_an_odd_filter_means_what_it_says(site: Site, text: str) -> None:
    reply = site.found(text)
    assert reply.status == 200, reply
    is_wild = text in {HARMLESS["a percent"]}
    assert reply.json["totalResults"] == int(is_wild), reply


@pytest.mark.parametrize("value", ["%ff", "%ED%A0%80", "%C0%AE", "%", "%zz", "%00", "%0d%0a", "+", "%F0%9F"])
def test_bytes_that_are_no_text_are_no_filter(site: Site, value: str) -> None:
    for noun in NOUNS:
        assert site.send("GET", f"{noun}?filter={value}").json["scimType"] == "invalidFilter"
        reply = site.send("GET", f"{noun}?filter=displayName%20eq%20%22{value}%22")
        assert reply.status == 200 or reply.json["scimType"] == "invalidFilter"


NUMBERS: dict[str, int | None] = {
    "1": 1, "0": 1, "-1": 1, "-9223372036854775809": 1, "1000000000": 1000000000, "%2B1": None, " 1": None,
    "9223372036854775807": 1000000000, "9" * 4300: 1000000000, "9" * 8000: 1000000000, "-" + "9" * 8000: 1,
    "": None, "x": None, "1.0": None, "1e3": None, "0x10": None, "1_000": None, "%D9%A3": None, "null": None,
    "NaN": None, "1,2": None, "1%00": None, "--1": None, "%ff": None, "000000000000000000000001": 1,
}  # fmt: skip


@pytest.mark.parametrize(("sent", "start"), NUMBERS.items(), ids=[name[:24] or "empty" for name in NUMBERS])
@pytest.mark.parametrize("noun", NOUNS)
def test_a_page_has_bounds(site: Site, noun: str, sent: str, start: int | None) -> None:
    paged = site.send("GET", f"{noun}?startIndex={sent.replace(' ', '%20')}")
    counted = site.send("GET", f"{noun}?count={sent.replace(' ', '%20')}")
    if start is None:
        for reply in (paged, counted):
            assert (reply.status, reply.json["scimType"]) == (400, "invalidValue"), reply
        return
    assert (paged.status, paged.json["startIndex"]) == (200, start)
    assert counted.status == 200
    assert counted.json["itemsPerPage"] == len(counted.json["Resources"]) <= 200


@pytest.mark.parametrize("value", [True, 1.5, 1e400, [], {}, "x", "1.0", [1], "", 2**63, -(2**63)])
@pytest.mark.parametrize("name", ["startIndex", "count"])
def test_a_number_of_a_search_is_a_number(site: Site, name: str, value: Any) -> None:
    reply = site.ask("POST", "/Users/.search", {name: value})
    if isinstance(value, int) and not isinstance(value, bool):
        assert reply.status == 200
    else:
        assert reply.json["scimType"] in {"invalidValue", "invalidSyntax"}


SORTS = {
    "sortBy=nothing": 400, "sortBy=password": 400, "sortBy=name": 400, "sortBy=emails": 200, "sortBy=": 200,
    "sortBy=userName;DROP": 400, "sortBy=userName%20desc": 400, "sortBy=%ff": 400, "sortBy=groups": 400,
    "sortBy=" + "a" * 7000: 400, "sortBy=name..givenName": 400, "sortBy=emails%5Btype%20eq%20%22x%22%5D": 400,
    "sortBy=userName&sortOrder=up": 400, "sortOrder=sideways": 400, "sortOrder=DESCENDING": 200,
    "sortBy=USERNAME&sortOrder=Ascending": 200, "sortBy=userName&sortOrder=": 200,
    "sortBy=urn:ietf:params:scim:schemas:core:2.0:User:userName": 200, "sortBy=userName&sortOrder=%00": 400,
}  # fmt: skip


@pytest.mark.parametrize(("query", "status"), SORTS.items(), ids=[name[:40] for name in SORTS])
def test_an_order_that_cannot_be_is_refused(site: Site, query: str, status: int) -> None:
    reply = site.send("GET", f"/Users?{query}")
    assert reply.status == status, reply
    if status == 400:
        assert reply.json["scimType"] == "invalidValue"


SEARCHES: dict[str, Any] = {
    "filter": [5, True, [], {}, ["userName pr"]],
    "sortBy": [5, True, [], {}, ["userName"]],
    "sortOrder": [5, True, [], {}, "x"],
    "attributes": [5, True, {}, [5], [None], [["userName"]]],
    "excludedAttributes": [5, True, {}, [5], [None], [["userName"]]],
}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_field_of_a_search_of_another_type_is_refused(site: Site, name: str) -> None:
    for noun in NOUNS:
        for value in SEARCHES[name]:
            reply = site.ask("POST", f"{noun}/.search", {name: value})
            assert (reply.status, reply.json["scimType"]) == (400, "invalidValue"), (value, reply)


@pytest.mark.parametrize("name", ["filter", "startIndex", "count", "sortBy", "sortOrder", "attributes"])
def test_a_parameter_that_is_there_twice_is_refused(site: Site, name: str) -> None:
    for second in (name, name.upper(), name.lower()):
        reply = site.send("GET", f"/Users?{name}=1&{second}=1")
        assert (reply.status, reply.json["scimType"]) == (400, "invalidValue")
        assert name in reply.json["detail"]


@pytest.mark.parametrize(
    "value",
    ["", ",", ",,,", "x", "%00", "%ff", "%F0%9F%99%82", "userName.", ".", "[", "emails[", "a," * 3000],
)
@pytest.mark.parametrize("name", ["attributes", "excludedAttributes"])
def test_attributes_that_are_none_are_passed_over(site: Site, name: str, value: str) -> None:
    user = site.add_user()
    for path in ("/Users", "/Groups", user):
        assert site.send("GET", f"{path}?{name}={value}").status == 200, value
    assert site.send("GET", f"{user}?{name}={value}").json["id"] == user.rpartition("/")[2]


def test_attributes_and_excluded_attributes_exclude_each_other(site: Site) -> None:
    for path in ("/Users", "/Groups", site.add_user()):
        reply = site.send("GET", f"{path}?attributes=id&excludedAttributes=meta")
        assert (reply.status, reply.json["scimType"]) == (400, "invalidValue")


def test_a_write_with_bad_attributes_writes_nothing(site: Site) -> None:
    name = site.new_name()
    assert site.ask("POST", "/Users?attributes=id&excludedAttributes=meta", {"userName": name}).status == 400
    assert site.found(f'userName eq "{name}"').json["totalResults"] == 0
    user = site.add_user()
    before = site.shown(user)
    query = "?attributes=id&attributes=meta"
    operation = {"op": "replace", "path": "displayName", "value": "New"}
    for method, body in (("PUT", {"userName": name}), ("PATCH", {"Operations": [operation]})):
        assert site.ask(method, user + query, body).status == 400
    assert site.shown(user) == before


@pytest.mark.parametrize(
    "ending", ["?", "?&", "?&&", "/?", "?=", "?x", "?x=1&x=2", "?%00=1", "?a[]=1", "?#", "/"]
)
def test_odd_endings_of_an_address_are_no_failure(site: Site, ending: str) -> None:
    user = site.add_user()
    for path in ("/Users", "/Groups", user, site.add_group(), "/Schemas", "/ServiceProviderConfig"):
        assert site.send("GET", path + ending).status == 200, path
    name = quote(f'userName eq "{site.shown(user)["userName"]}"')
    for more in ("&", "&&", "&x=", "&startIndex=1&"):
        assert site.send("GET", f"/Users?filter={name}{more}").json["totalResults"] == 1
    assert site.send("DELETE", user + ending).status == 204


def test_what_describes_the_gateway_cannot_be_filtered(site: Site) -> None:
    for path in ("/Schemas", "/ResourceTypes", "/ServiceProviderConfig", "/ResourceTypes/User"):
        assert site.send("GET", f"{path}?filter=id%20pr").status == 403

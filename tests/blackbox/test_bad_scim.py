"""Messages of identity providers that cannot be understood: the right SCIM error, and nothing half-written.

Each answer is looked at by `Site.note`; at the end all that is there is listed, and the log is read.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes.daemons.bad_provisioning_site import (
    GROUP,
    PATCH_OP,
    USER,
    Site,
    assert_whole,
    opened_provoked,
)
from tests.fakes.storage.postgres import Postgres

UNKNOWN = "00000000-0000-4000-8000-000000000000"
TOO_LONG = 5 * 1024 * 1024


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened_provoked(tmp_path_factory.mktemp("s")) as opened:
        yield opened


def writes(site: Site) -> list[tuple[str, str]]:
    """Return every row that takes a body."""
    user = site.add_user()
    group = site.add_group(user)
    creates = [("POST", noun + way) for noun in ("/Users", "/Groups") for way in ("", "/.search")]
    return [*creates, *((method, path) for method in ("PUT", "PATCH") for path in (user, group))]


UNREADABLE: dict[str, bytes] = {
    "nothing": b"",
    "blanks": b"  \n",
    "half": b'{"schemas": ["',
    "an array": b"[]",
    "a text": b'"x"',
    "a number": b"5",
    "null": b"null",
    "65 levels": b'{"a": ' + b"[" * 64 + b"]" * 64 + b"}",
    "100,000 levels": b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "100,000 objects": b'{"a": ' * 100_000 + b"1" + b"}" * 100_000,
    "invalid UTF-8": b'{"userName": "\xff\xfe@example.org"}',
    "a lone surrogate": b'{"userName": "\\ud800@example.org"}',
    "NaN": b'{"userName": NaN}',
    "Infinity": b'{"userName": -Infinity}',
    "UTF-16": '{"userName": "a@example.org"}'.encode("utf-16"),
    "two values": b"{}{}",
    "a NUL": b'{"a": 1}\x00',
    "a long integer": b'{"active": ' + b"9" * 5000 + b"}",
    "XML": b"<User/>",
    "a form": b"userName=a%40example.org",
}


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_no_json_object_is_a_syntax_error(site: Site, body: bytes) -> None:
    for method, path in writes(site):
        reply = site.send(method, path, body)
        assert (reply.status, reply.json["scimType"]) == (400, "invalidSyntax"), (method, path)


def test_a_body_over_the_limit_is_refused_and_the_next_request_is_served(site: Site) -> None:
    text = b'{"userName": "' + b"a" * TOO_LONG + b'"}'
    for method, path in writes(site):
        assert site.send(method, path, text).status == 413
        assert site.send(method, path, [text[:65536]] * (TOO_LONG // 65536 + 1)).status == 413
        assert site.ask("GET", "/Users?count=0").status == 200
    head = f"POST /api/v1/scim/v2/Users HTTP/1.1\r\nContent-Length: {len(text)}\r\n"
    # After the refusal nothing of the body is taken for a request.
    assert [reply.status for reply in site.raw(head, text)] == [413]


# The first three are decoded; of the others the decoder refuses to read more, before anything is looked at.
LARGE: dict[str, bytes] = {
    "members": b'{"displayName": "x", "members": [' + b"{}," * 60_000 + b"{}]}",
    "emails": b'{"userName": "a@b.org", "emails": [' + b"{}," * 60_000 + b"{}]}",
    "operations": b'{"Operations": [' + b"{}," * 60_000 + b"{}]}",
    "names": b"{" + b",".join(b'"a%d":1' % number for number in range(300_000)) + b"}",
    "a text": b'{"userName": "' + b"a" * 4_000_000 + b'@b.org"}',
    "too many objects": b'{"displayName": "x", "members": [' + b"{}," * 1_300_000 + b"{}]}",
}
TOO_MANY_TEXTS = b'{"schemas": [' + b'"",' * 1_300_000 + b'""]}'


@pytest.mark.parametrize("body", LARGE.values(), ids=LARGE)
def test_a_large_body_is_answered_in_time(site: Site, body: bytes) -> None:
    for method, path in writes(site):
        reply = site.send(method, path, body)
        assert reply.status in {400, 413} or path.endswith(".search"), reply


def test_a_list_of_too_many_texts_is_answered_in_time(site: Site) -> None:
    assert site.send("POST", "/Users", TOO_MANY_TEXTS).status == 413


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/scim+json", 200),
        ("application/json", 200),
        ("application/scim+json; charset=utf-8", 200),
        ("APPLICATION/JSON;CHARSET=UTF-8", 200),
        ("", 200),
        ("text/plain", 415),
        ("application/xml", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("application/json-patch+json", 415),
        ("*/*", 415),
        ("\xff" * 500, 415),
    ],
)
def test_a_body_of_another_media_type_is_not_read(site: Site, kind: str, status: int) -> None:
    body = json.dumps({"userName": site.new_name()}).encode()
    reply = site.send("PUT", site.add_user(), body, {"Content-Type": kind})
    assert reply.status == status, reply


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "x", "gzip, identity"])
def test_a_compressed_body_is_refused(site: Site, coding: str) -> None:
    for method, path in writes(site):
        assert site.send(method, path, b"{}", {"Content-Encoding": coding}).status == 415


def test_a_read_may_have_a_media_type_and_a_body(site: Site) -> None:
    user = site.add_user()
    for kind in ("application/scim+json", "text/plain", "multipart/form-data; boundary=x"):
        for body in (None, b"{}", b"{", b"x" * 100_000):
            for path in ("/Users", user, "/Schemas", "/ServiceProviderConfig"):
                assert site.send("GET", path, body, {"Content-Type": kind}).status == 200
            assert site.send("DELETE", user, body, {"Content-Type": kind}).status == 204


@pytest.mark.parametrize("value", ["*", '"x"', 'W/"1"', "x" * 1000])
@pytest.mark.parametrize("name", ["If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"])
def test_conditions_of_a_request_are_passed_over(site: Site, name: str, value: str) -> None:
    user = site.add_user()
    headers = {name: value}
    assert site.send("GET", user, None, headers).status == 200
    reply = site.send("PUT", user, json.dumps({"userName": site.new_name()}).encode(), headers)
    assert reply.status == 200
    assert "etag" not in reply.headers
    assert site.send("DELETE", user, None, headers).status == 204


SCHEMAS: dict[str, Any] = {
    "another": [GROUP],
    "none": [],
    "no list": USER,
    "no texts": [5],
    "an object": {},
    "null inside": [None],
    "only an extension": ["urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],
    "a flag": True,
}


@pytest.mark.parametrize("value", SCHEMAS.values(), ids=SCHEMAS)
def test_a_message_of_another_schema_is_refused(site: Site, value: Any) -> None:
    user = site.add_user()
    operations = [{"op": "replace", "path": "active", "value": False}]
    before = site.shown(user)
    bodies = {
        "POST /Users": {"userName": site.new_name()},
        f"PUT {user}": {"userName": site.new_name()},
        f"PATCH {user}": {"Operations": operations},
        "POST /Users/.search": {"filter": "active eq true"},
    }
    for row, body in bodies.items():
        method, path = row.split(" ")
        reply = site.ask(method, path, {**body, "schemas": value})
        assert (reply.status, reply.json["scimType"]) == (400, "invalidSyntax"), row
    assert site.shown(user) == before


def test_unknown_attributes_are_neither_kept_nor_shown(site: Site) -> None:
    extension = "urn:example:params:scim:schemas:extension:own:1.0:User"
    more = {"favouriteColour": "red", extension: {"a": [1, {"b": None}]}, "": 1, "a" * 10_000: "x", "é🙂": []}
    body = {"schemas": [USER, extension], "userName": site.new_name(), "active": True, **more}
    made = site.ask("POST", "/Users", body)
    assert (made.status, made.json["schemas"]) == (201, [USER])
    path = f"/Users/{made.json['id']}"
    assert site.shown(path) == made.json
    changed = site.ask("PATCH", path, {"Operations": [{"op": "add", "value": more}]})
    assert (changed.status, changed.json) == (200, made.json)
    for name in ("favouriteColour", "a.b.c", "", "[", "userName.value", "emails[", "é", "name.x", "x" * 9000):
        operation = {"op": "replace", "path": name, "value": "x"}
        reply = site.ask("PATCH", path, {"Operations": [operation]})
        assert (reply.status, reply.json["scimType"]) in {(400, "invalidPath"), (400, "invalidValue")}, name
    assert site.shown(path) == made.json


def test_a_key_that_is_there_twice_is_no_failure(site: Site) -> None:
    first, last = site.new_name(), site.new_name()
    reply = site.send("POST", "/Users", f'{{"userName": "{first}", "userName": "{last}"}}'.encode())
    assert (reply.status, reply.json["userName"]) == (201, last)
    body = f'{{"userName": "{site.new_name()}", "USERNAME": "{site.new_name()}"}}'
    assert site.send("POST", "/Users", body.encode()).json["scimType"] == "invalidSyntax"


WRONG: list[Any] = [
    None, True, False, 0, -1, 2**63, 1.5, 1e308, "", " ", "x", "\x00", "\r\nX: y", "é\u2028🙂", "\u202e",
    "a@b", "@", "a" * 70_000, [], [None], [1], ["x"], [[]], [{}], {}, {"a": 1}, {"value": 5}, {"value": None},
    {"formatted": []}, {"givenName": {}}, [{"value": []}], [{"value": {"value": "x"}}], [{"$ref": UNKNOWN}],
    [{"value": "a@b.org", "primary": "x"}], [{"value": "a@b.org", "type": 5}], [{"value": "a@b.org"}] * 200,
    [{"value": f"{number}@b.org", "primary": True} for number in range(2)],
    [{"value": UNKNOWN, "type": "Group"}],
]  # fmt: skip
USER_NAMES = (
    "userName", "displayName", "name", "name.givenName", "emails", "active", "externalId", "password", "id",
    "meta", "groups", "schemas", "title", "photos", "roles", "phoneNumbers", "addresses", "locale",
    "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User", USER, f"{USER}:active", "emails.value",
    'emails[type eq "work"].value', 'emails[type eq "work"]', "emails[primary eq true].type",
    "emails[value pr]",
)  # fmt: skip
GROUP_NAMES = (
    "displayName", "members", "externalId", "id", "meta", "schemas", GROUP, f"{GROUP}:members",
    "members.value", "members[value pr]", 'members[value eq "x"]', 'members[display co "a"].value',
    "members[type ne true]",
)  # fmt: skip
STORED_USER_NAMES = (
    "userName", "displayName", "name", "name.givenName", "emails", "active", "externalId", "title", "photos",
    'emails[type eq "work"].value', 'emails[type eq "work"]',
)  # fmt: skip
STORED_GROUP_NAMES = ("displayName", "members", "externalId", 'members[value eq "x"]')
OPS = ("add", "replace", "remove")


def assert_all_or_nothing(site: Site, path: str, before: Any, reply: Any) -> Any:
    """Check that a refused write changed nothing, and that what is there is whole; return it."""
    after = site.shown(path)
    if reply.status >= 400:
        assert after == before, reply
    return after


@pytest.mark.parametrize(("noun", "names"), [("/Users", USER_NAMES), ("/Groups", GROUP_NAMES)])
def test_every_attribute_may_have_any_type(site: Site, noun: str, names: tuple[str, ...]) -> None:
    user = site.add_user()
    path = user if noun == "/Users" else site.add_group(user)
    shown = site.shown(path)
    for turn, (name, value) in enumerate((name, value) for name in names for value in WRONG):
        key = {"userName": site.new_name()} if noun == "/Users" else {"displayName": site.new_name()}
        # A creation and a replacement read the same resource, so that each value needs one of them.
        if turn % 2:
            reply = site.ask("POST", noun, {**key, name: value})
            if reply.status == 201:
                assert_whole(reply.json)
        else:
            shown = assert_all_or_nothing(site, path, shown, site.ask("PUT", path, {**key, name: value}))
        first = {"op": "replace", "path": "displayName", "value": f"Half {turn}"}
        with_path = {"op": OPS[turn % 3], "path": name, "value": value}
        pathless = {"op": OPS[turn // 3 % 3], "value": {"displayName": "Half", name: value}}
        for operation in (with_path, pathless):
            reply = site.ask("PATCH", path, {"Operations": [first, operation]})
            shown = assert_all_or_nothing(site, path, shown, reply)


def test_every_field_of_an_operation_may_have_any_type(site: Site) -> None:
    user = site.add_user()
    for path in (user, site.add_group(user)):
        shown = site.shown(path)
        for value in WRONG:
            plain = {"op": "replace", "path": "displayName", "value": f"Name {next(site.numbers)}"}
            for operations in (value, [value], [{**plain, "op": value}], [{**plain, "path": value}]):
                reply = site.ask("PATCH", path, {"schemas": [PATCH_OP], "Operations": operations})
                shown = assert_all_or_nothing(site, path, shown, reply)


def test_no_operations_change_nothing(site: Site) -> None:
    user = site.add_user()
    for path, status in ((user, 200), (site.add_group(user), 204)):
        before = site.shown(path)
        assert site.ask("PATCH", path, {"schemas": [PATCH_OP], "Operations": []}).status == status
        assert site.shown(path) == before
        for body in ({}, {"schemas": [PATCH_OP]}, {"Operations": {}}, {"operation": []}):
            assert site.ask("PATCH", path, body).json["scimType"] == "invalidSyntax"


def member_requests(group: str, name: str, members: list[dict[str, str]]) -> list[tuple[str, str, Any]]:
    """Return each way to make somebody a member; the last of `members` is new."""
    replacing = {"op": "replace", "path": "members", "value": members}
    adding = {"op": "add", "path": "members", "value": members[-1:]}
    return [
        ("POST", "/Groups", {"displayName": name, "members": members}),
        ("PUT", group, {"displayName": f"{name} again", "members": members}),
        ("PATCH", group, {"Operations": [replacing]}),
        ("PATCH", group, {"Operations": [adding]}),
    ]


def test_members_that_cannot_be_are_refused(site: Site) -> None:
    group = site.add_group(site.add_user())
    before = site.shown(group)
    for bad in ("", " ", "\u0000", "a\nb", "a" * 5000):
        members = [{"value": before["members"][0]["value"]}, {"value": bad}]
        name = f"g{next(site.numbers)}"
        for method, path, body in member_requests(group, name, members):
            reply = site.ask(method, path, body)
            assert (reply.status, reply.json["scimType"]) == (400, "invalidValue"), (method, bad, reply)
        assert site.ask("GET", f'/Groups?filter=displayName%20eq%20"{name}"').json["totalResults"] == 0
    assert site.shown(group) == before


def test_members_whom_nobody_is_are_skipped(site: Site) -> None:
    user = site.add_user()
    group, other = site.add_group(user), site.add_group()
    members = site.shown(group)["members"]
    ids = [path.rpartition("/")[2] for path in (group, other)]
    for stale in (*ids, UNKNOWN, "x", "é🙂", "%", "1 OR 1=1", user):
        sent = [{"value": members[0]["value"]}, {"value": stale}]
        for method, path, body in member_requests(group, f"g{next(site.numbers)}", sent):
            reply = site.ask(method, path, body)
            assert reply.status in (200, 201, 204), (method, stale, reply)
            assert reply.headers["x-gateway-warning"].startswith("members were skipped")
            assert site.shown(group)["members"] == members
            if method == "POST":
                assert reply.json["members"] == members


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=8) | st.sampled_from(["value", "type", "primary", "op", "path"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
VALUES = JSON | st.sampled_from(WRONG) | st.sampled_from(["a@b.org", "work", "True", UNKNOWN])
BODIES = JSON | st.dictionaries(st.sampled_from(USER_NAMES + GROUP_NAMES), VALUES, max_size=5)
OPERATIONS = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "Replace", "remove"]) | VALUES},
    optional={"path": st.sampled_from(USER_NAMES + GROUP_NAMES) | VALUES, "value": VALUES | BODIES},
)
MESSAGES = BODIES | st.fixed_dictionaries({"Operations": st.lists(OPERATIONS, max_size=4)})


def provoke(site: Site, paths: list[str], method: str, body: Any) -> None:
    for path in paths:
        before = site.shown(path)
        if method == "POST":
            reply = site.ask(method, path.rpartition("/")[0], body)
            if reply.status == 201:
                assert_whole(reply.json)
        else:
            reply = site.ask(method, path, body)
            assert_all_or_nothing(site, path, before, reply)


def provoke_with_anything(site: Site, examples: int) -> None:
    user = site.add_user()
    paths = [user, site.add_group(user)]

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(method=st.sampled_from(["POST", "PUT", "PATCH", "PATCH"]), body=MESSAGES)
    def run(method: str, body: Any) -> None:
        provoke(site, paths, method, body)

    run()


def test_any_body_is_taken_whole_or_refused(site: Site) -> None:
    provoke_with_anything(site, 120)


@pytest.mark.slow
def test_any_body_is_taken_whole_or_refused_on_postgresql(
    tmp_path_factory: pytest.TempPathFactory, postgres: Postgres
) -> None:
    with opened_provoked(tmp_path_factory.mktemp("s"), DATABASE_URL=postgres.migrated_database()) as site:
        provoke_with_anything(site, 60)
        # What no column keeps is refused or passed over before any database.
        test_every_attribute_may_have_any_type(site, "/Users", STORED_USER_NAMES)
        test_every_attribute_may_have_any_type(site, "/Groups", STORED_GROUP_NAMES)

"""Tests for gatewayd.http.public.scim.routes."""

from collections.abc import AsyncIterator
from ipaddress import ip_network
from typing import Any

import pytest

from gatewayd.accounts.records import Role
from gatewayd.http.middleware import EdgeOptions
from tests.fakes.accounts.scim_site import ROOT, ScimSite, serving_scim

USER = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"
SEARCH = "urn:ietf:params:scim:api:messages:2.0:SearchRequest"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
LIST = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
ADA = {
    "schemas": [USER],
    "userName": "ada@example.org",
    "externalId": "7",
    "displayName": "Ada",
    "emails": [{"value": "ada@example.org"}],
}


@pytest.fixture
async def site() -> AsyncIterator[ScimSite]:
    async with serving_scim() as made:
        yield made


def patch(*operations: Any) -> Any:
    return {"schemas": [PATCH], "Operations": list(operations)}


async def add(site: ScimSite, name: str, **more: Any) -> str:
    created = await site.ok("POST", "/Users", {"userName": f"{name}@example.org", **more}, 201)
    return str(created["id"])


async def add_group(site: ScimSite, name: str, *members: str) -> str:
    body = {"displayName": name, "members": [{"value": member} for member in members]}
    return str((await site.ok("POST", "/Groups", body, 201))["id"])


def site_of(site: ScimSite) -> str:
    return f"http://{site.client.host}:{site.client.port}"


async def test_a_user_is_made_and_found_where_the_answer_says(site: ScimSite) -> None:
    reply = await site.call("POST", "/Users", ADA)
    location = f"{site_of(site)}{ROOT}/Users/{reply.body['id']}"
    assert reply.status == 201
    assert reply.headers["Location"] == reply.body["meta"]["location"] == location
    assert reply.body["emails"] == [{"value": "ada@example.org", "type": "work", "primary": True}]
    assert (reply.body["externalId"], reply.body["active"], reply.body["groups"]) == ("7", True, [])
    assert await site.ok("GET", f"/Users/{reply.body['id']}") == reply.body


async def test_a_name_that_is_taken_is_a_conflict(site: ScimSite) -> None:
    await site.ok("POST", "/Users", ADA, 201)
    again = await site.call("POST", "/Users", {**ADA, "userName": "ADA@example.org", "externalId": "8"})
    assert again.error == (409, "uniqueness")
    linked = await site.call("POST", "/Users", {**ADA, "userName": "bob@example.org"})
    assert linked.error == (409, "uniqueness")


async def test_a_user_is_replaced(site: ScimSite) -> None:
    user_id = await add(site, "ada")
    replaced = await site.ok("PUT", f"/Users/{user_id}", {**ADA, "displayName": "Countess"})
    assert (replaced["id"], replaced["displayName"], replaced["externalId"]) == (user_id, "Countess", "7")
    assert await site.ok("GET", f"/Users/{user_id}") == replaced


async def test_a_user_is_changed_and_shown_anew(site: ScimSite) -> None:
    user_id = await add(site, "ada")
    body = patch({"op": "Replace", "path": "active", "value": "False"})
    changed = await site.ok("PATCH", f"/Users/{user_id}", body)
    assert changed["active"] is False
    assert await site.ok("GET", f"/Users/{user_id}") == changed


async def test_a_deleted_user_stays_visible_without_being_active(site: ScimSite) -> None:
    user_id = await add(site, "ada")
    for _ in range(2):
        reply = await site.call("DELETE", f"/Users/{user_id}")
        assert (reply.status, reply.body) == (204, None)
    assert (await site.ok("GET", f"/Users/{user_id}"))["active"] is False


async def test_the_last_administrator_stays(site: ScimSite) -> None:
    user = await site.scim.accounts.add_user("root", Role.ADMIN)
    assert (await site.call("DELETE", f"/Users/{user.id}")).error == (403, None)
    reply = await site.call(
        "PATCH", f"/Users/{user.id}", patch({"op": "replace", "value": {"active": False}})
    )
    assert reply.error == (403, None)
    assert (await site.ok("GET", f"/Users/{user.id}"))["active"] is True


@pytest.mark.parametrize("path", ["/Users/nobody", "/Groups/nothing", "/Users/.search", "/Users/%ff"])
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
async def test_what_is_not_there_is_not_found(site: ScimSite, path: str, method: str) -> None:
    if method in {"GET", "DELETE"}:
        body = None
    elif method == "PATCH":
        body = patch({"op": "replace", "path": "displayName", "value": "x"})
    else:
        body = {"userName": "a@example.org", "displayName": "x"}
    assert (await site.call(method, path, body)).error == (404, None)


@pytest.mark.parametrize("path", ["/Users", "/Users?filter=userName pr", "/Groups", "/Schemas"])
async def test_head_answers_as_get_does(site: ScimSite, path: str) -> None:
    reply = await site.call("HEAD", path)
    assert (reply.status, reply.body, reply.headers["Content-Type"]) == (200, None, "application/scim+json")
    assert int(reply.headers["Content-Length"]) > 0


async def test_a_page_of_a_list(site: ScimSite) -> None:
    made = [await add(site, f"u{number}") for number in range(5)]
    page = await site.ok("GET", "/Users?startIndex=2&count=3")
    assert {name: page[name] for name in page if name != "Resources"} == {
        "schemas": [LIST],
        "totalResults": 5,
        "startIndex": 2,
        "itemsPerPage": 3,
    }
    assert [each["id"] for each in page["Resources"]] == made[1:4]
    ordered = await site.ok("GET", "/Users?sortBy=userName&sortOrder=DESCENDING")
    assert [each["id"] for each in ordered["Resources"]] == made[::-1]


@pytest.mark.parametrize(
    ("query", "start", "count"),
    [
        ("", 1, 2),
        ("startIndex=0", 1, 2),
        ("startIndex=-5", 1, 2),
        ("count=0", 1, 0),
        ("count=-1", 1, 0),
        ("count=00001", 1, 1),
        (f"count={'9' * 5000}", 1, 2),
        (f"startIndex=-{'9' * 5000}", 1, 2),
        ("STARTINDEX=2&Count=5", 2, 1),
        ("sortBy=&sortOrder=&attributes=&excludedAttributes=", 1, 2),
        ("foo=bar&foo=baz&$top=1", 1, 2),
    ],
)
async def test_numbers_out_of_range_become_the_nearest_one(
    site: ScimSite, query: str, start: int, count: int
) -> None:
    await add(site, "ada")
    await add(site, "bob")
    page = await site.ok("GET", f"/Users?{query}")
    assert (page["totalResults"], page["startIndex"], page["itemsPerPage"]) == (2, start, count)
    assert len(page["Resources"]) == count


async def test_a_start_far_behind_the_end_is_an_empty_page(site: ScimSite) -> None:
    await add(site, "ada")
    page = await site.ok("GET", f"/Users?startIndex={'9' * 5000}")
    assert (page["totalResults"], page["Resources"]) == (1, [])


@pytest.mark.parametrize("noun", ["Users", "Groups"])
@pytest.mark.parametrize(
    ("query", "kind", "named"),
    [
        ("startIndex=one", "invalidValue", "startIndex"),
        ("startIndex=", "invalidValue", "startIndex"),
        ("count=1.0", "invalidValue", "count"),
        ("count=%2B1", "invalidValue", "count"),
        ("count=+1", "invalidValue", "count"),
        ("count=1e3", "invalidValue", "count"),
        ("count=%D9%A3", "invalidValue", "count"),
        ("count=1&count=2", "invalidValue", "count"),
        ("count=1&COUNT=1", "invalidValue", "count"),
        ("filter=id pr&filter=id pr", "invalidValue", "filter"),
        ("sortOrder=up", "invalidValue", "sortOrder"),
        ("sortBy=nothing", "invalidValue", "sortBy"),
        ("attributes=id&excludedAttributes=meta", "invalidValue", "excludedAttributes"),
        ("filter=", "invalidFilter", "filter"),
        ("filter=nothing eq 1", "invalidFilter", "nothing"),
        ("filter=id eq", "invalidFilter", "filter"),
    ],
)
async def test_a_wrong_parameter_is_named(
    site: ScimSite, noun: str, query: str, kind: str, named: str
) -> None:
    reply = await site.call("GET", f"/{noun}?{query}")
    assert reply.error == (400, kind)
    assert named in reply.body["detail"]


@pytest.mark.parametrize("value", ["ß\u202e", "100%", "a_b", "'; DROP TABLE users; --", "😀"])
async def test_odd_texts_in_filters_find_nobody(site: ScimSite, value: str) -> None:
    await add(site, "ada")
    reply = await site.call("POST", "/Users/.search", {"filter": f'userName eq "{value}"'})
    assert (reply.status, reply.body["totalResults"]) == (200, 0)


@pytest.mark.parametrize("value", ["a\x00b", "a\\u0000b", "\\ud800"])
async def test_texts_that_cannot_be_stored_are_refused(site: ScimSite, value: str) -> None:
    reply = await site.call("POST", "/Users/.search", {"filter": f'userName eq "{value}"'})
    assert reply.error == (400, "invalidFilter")


async def test_only_what_is_asked_for_is_shown(site: ScimSite) -> None:
    user_id = await add(site, "ada")
    shown = await site.ok("GET", f"/Users/{user_id}?attributes=userName,meta.created")
    assert shown.keys() == {"schemas", "id", "userName", "meta"}
    assert shown["meta"].keys() == {"created"}
    less = await site.ok("GET", f"/Users/{user_id}?excludedAttributes=emails, Groups,id")
    assert not less.keys() & {"emails", "groups"}
    assert less["id"] == user_id
    [listed] = (await site.ok("GET", "/Users?attributes=userName"))["Resources"]
    assert listed.keys() == {"schemas", "id", "userName"}
    created = await site.ok("POST", "/Users?attributes=id", {"userName": "b@example.org"}, 201)
    assert created.keys() == {"schemas", "id"}
    replaced = await site.ok("PUT", f"/Users/{user_id}?attributes=displayName", ADA)
    assert replaced.keys() == {"schemas", "id", "displayName"}
    body = patch({"op": "replace", "path": "displayName", "value": "x"})
    changed = await site.ok("PATCH", f"/Users/{user_id}?excludedAttributes=meta", body)
    assert "meta" not in changed


async def test_a_choice_that_makes_no_sense_changes_nothing(site: ScimSite) -> None:
    reply = await site.call("POST", "/Users?attributes=id&excludedAttributes=meta", ADA)
    assert reply.error == (400, "invalidValue")
    assert (await site.ok("GET", "/Users"))["totalResults"] == 0


async def test_a_search_by_post(site: ScimSite) -> None:
    made = [await add(site, name) for name in ("ada", "bob", "cyd")]
    body = {
        "schemas": [SEARCH],
        "Filter": 'userName co "@example.org"',
        "startIndex": 2,
        "count": 1,
        "sortBy": "userName",
        "sortOrder": "ascending",
        "attributes": ["userName"],
        "excludedAttributes": None,
    }
    page = await site.ok("POST", "/Users/.search", body)
    assert (page["totalResults"], page["startIndex"], page["itemsPerPage"]) == (3, 2, 1)
    assert page["Resources"] == [{"schemas": [USER], "id": made[1], "userName": "bob@example.org"}]
    joined = await site.ok("POST", "/Users/.search", {"attributes": "userName,meta.created", "count": 1})
    assert joined["Resources"][0].keys() == {"schemas", "id", "userName", "meta"}
    assert (await site.ok("POST", "/Users/.search", {}))["totalResults"] == 3
    assert (await site.ok("POST", "/Groups/.search", {"schemas": [SEARCH]}))["totalResults"] == 0


@pytest.mark.parametrize("noun", ["Users", "Groups"])
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"schemas": [USER]}, "invalidSyntax"),
        ({"schemas": SEARCH}, "invalidSyntax"),
        ({"schemas": [[]]}, "invalidSyntax"),
        ({"filter": 1}, "invalidValue"),
        ({"filter": "nothing pr"}, "invalidFilter"),
        ({"startIndex": 1.0}, "invalidValue"),
        ({"startIndex": True}, "invalidValue"),
        ({"count": "many"}, "invalidValue"),
        ({"count": [1]}, "invalidValue"),
        ({"count": 1, "COUNT": 2}, "invalidValue"),
        ({"count": 10**30}, "invalidSyntax"),
        ({"sortBy": 1}, "invalidValue"),
        ({"sortOrder": "up"}, "invalidValue"),
        ({"attributes": [1]}, "invalidValue"),
        ({"attributes": {"id": True}}, "invalidValue"),
        ([], "invalidSyntax"),
        ("text", "invalidSyntax"),
        (b"", "invalidSyntax"),
        (b"{", "invalidSyntax"),
        (b'{"filter": "\xff"}', "invalidSyntax"),
        (b"[" * 100_000, "invalidSyntax"),
    ],
)
async def test_a_wrong_search_is_refused(site: ScimSite, noun: str, body: Any, kind: str) -> None:
    data = int_body(body) if body == {"count": 10**30} else body
    assert (await site.call("POST", f"/{noun}/.search", data)).error == (400, kind)


def int_body(body: Any) -> bytes:
    """Write what the encoder refuses to."""
    return b'{"count": %d}' % body["count"]


@pytest.mark.parametrize(
    "declared",
    [
        "application/scim+json",
        "application/json",
        "application/scim+json; charset=utf-8",
        "Application/JSON;charset=UTF-8",
        "application/json; charset=iso-8859-1",
        None,
        "",
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
async def test_both_media_types_are_taken_and_so_is_none(
    site: ScimSite, declared: str | None, method: str
) -> None:
    user_id = await add(site, "ada")
    path = "/Users" if method == "POST" else f"/Users/{user_id}"
    body: Any = {"userName": "bob@example.org"}
    if method == "PATCH":
        body = patch({"op": "replace", "path": "displayName", "value": "x"})
    reply = await site.call(method, path, body, {"Content-Type": declared})  # type: ignore[dict-item]
    assert reply.status == (201 if method == "POST" else 200), reply.body


@pytest.mark.parametrize("declared", ["text/plain", "application/xml", "application/x-www-form-urlencoded"])
@pytest.mark.parametrize("path", ["/Users", "/Groups", "/Users/.search"])
async def test_other_media_types_are_refused(site: ScimSite, path: str, declared: str) -> None:
    reply = await site.call("POST", path, b"{}", {"Content-Type": declared})
    assert reply.error == (415, None)
    assert declared in reply.body["detail"]


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_the_media_type_of_what_has_no_body_does_not_matter(site: ScimSite, method: str) -> None:
    user_id = await add(site, "ada")
    reply = await site.call(method, f"/Users/{user_id}", headers={"Content-Type": "text/plain"})
    assert reply.status in {200, 204}


async def test_a_body_has_a_longest_length(site: ScimSite) -> None:
    fits = {"userName": "ada@example.org", "title": "x" * (4 * 1024 * 1024 - 100)}
    assert (await site.call("POST", "/Users", fits)).status == 201
    over = {"userName": "bob@example.org", "title": "x" * (4 * 1024 * 1024)}
    assert (await site.call("POST", "/Users", over)).error == (413, None)


@pytest.mark.parametrize("body", [[], "text", None, 7, b"{", b"", b"\xff", b'{"a":NaN}'])
@pytest.mark.parametrize("path", ["/Users", "/Groups"])
async def test_a_body_that_is_no_object_is_a_matter_of_syntax(site: ScimSite, path: str, body: Any) -> None:
    data = b"null" if body is None else body
    assert (await site.call("POST", path, data)).error == (400, "invalidSyntax")


async def test_a_group_is_made_with_its_members(site: ScimSite) -> None:
    user_id = await add(site, "ada")
    body = {"schemas": [GROUP], "displayName": "Staff", "members": [{"value": user_id}]}
    reply = await site.call("POST", "/Groups", body)
    group_id = reply.body["id"]
    assert reply.status == 201
    assert reply.headers["Location"] == f"{site_of(site)}{ROOT}/Groups/{group_id}"
    [member] = reply.body["members"]
    assert (member["value"], member["$ref"]) == (user_id, f"{site_of(site)}{ROOT}/Users/{user_id}")
    assert await site.ok("GET", f"/Groups/{group_id}") == reply.body
    [group] = (await site.ok("GET", f"/Users/{user_id}"))["groups"]
    assert (group["value"], group["display"]) == (group_id, "Staff")


async def test_a_group_is_replaced_and_shown_with_its_members(site: ScimSite) -> None:
    ada, bob = await add(site, "ada"), await add(site, "bob")
    group_id = await add_group(site, "Staff", ada)
    body = {"displayName": "Crew", "members": [{"value": bob}]}
    replaced = await site.ok("PUT", f"/Groups/{group_id}", body)
    assert (replaced["displayName"], [each["value"] for each in replaced["members"]]) == ("Crew", [bob])
    less = await site.ok("PUT", f"/Groups/{group_id}?excludedAttributes=members", {"displayName": "Crew"})
    assert "members" not in less


async def test_a_changed_group_is_shown_only_to_who_asks(site: ScimSite) -> None:
    ada = await add(site, "ada")
    group_id = await add_group(site, "Staff")
    body = patch({"op": "Add", "path": "members", "value": [{"value": ada}]})
    reply = await site.call("PATCH", f"/Groups/{group_id}", body)
    assert (reply.status, reply.body) == (204, None)
    shown = await site.ok("PATCH", f"/Groups/{group_id}?attributes=members", body)
    assert [each["value"] for each in shown["members"]] == [ada]
    short = await site.ok("PATCH", f"/Groups/{group_id}?excludedAttributes=members", body)
    assert short["displayName"] == "Staff"
    assert "members" not in short


async def test_a_removed_group_is_gone(site: ScimSite) -> None:
    group_id = await add_group(site, "Staff")
    assert (await site.call("DELETE", f"/Groups/{group_id}")).status == 204
    assert (await site.call("DELETE", f"/Groups/{group_id}")).error == (404, None)


async def test_group_names_are_unique(site: ScimSite) -> None:
    await add_group(site, "Staff")
    assert (await site.call("POST", "/Groups", {"displayName": "STAFF"})).error == (409, "uniqueness")


async def test_members_that_are_not_shown_are_not_read(
    site: ScimSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    group_id = await add_group(site, "Staff", await add(site, "ada"))

    async def refuse(ids: Any) -> Any:
        raise AssertionError("read")

    monkeypatch.setattr(site.scim.directory, "list_members_of", refuse)
    monkeypatch.setattr(site.scim.directory, "list_groups_of", refuse)
    for query in ("excludedAttributes=members", "attributes=displayName"):
        await site.ok("GET", f"/Groups/{group_id}?{query}")
        await site.ok("GET", f"/Groups?{query}")
    for query in ("excludedAttributes=groups", "attributes=userName"):
        await site.ok("GET", f"/Users?{query}")


async def test_external_ids_need_a_provider() -> None:
    async with serving_scim("") as site:
        assert (await site.call("POST", "/Users", ADA)).error == (500, None)
        assert (await site.call("GET", '/Users?filter=externalId eq "7"')).error == (500, None)
        assert (await site.ok("GET", "/Users"))["totalResults"] == 0
        plain = {name: value for name, value in ADA.items() if name != "externalId"}
        await site.ok("POST", "/Users", plain, 201)


@pytest.mark.parametrize(
    ("trusted", "headers", "base"),
    [
        ((), {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "ai.example.org"}, None),
        (("10.0.0.0/8",), {"X-Forwarded-Proto": "https"}, None),
        (
            ("127.0.0.0/8",),
            {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "ai.example.org"},
            "https://ai.example.org",
        ),
        (
            ("127.0.0.0/8",),
            {"X-Forwarded-Proto": "https", "Host": "ai.example.org"},
            "https://ai.example.org",
        ),
        (("127.0.0.0/8",), {"X-Forwarded-Host": "[2001:db8::1]:8443"}, "http://[2001:db8::1]:8443"),
        (("127.0.0.0/8",), {"X-Forwarded-Proto": "javascript", "X-Forwarded-Host": 'a/b"<'}, None),
    ],
)
async def test_addresses_are_those_that_the_client_sees(
    trusted: tuple[str, ...], headers: dict[str, str], base: str | None
) -> None:
    options = EdgeOptions(trusted_proxies=tuple(ip_network(each) for each in trusted))
    async with serving_scim(options=options) as site:
        reply = await site.call("POST", "/Users", ADA, headers)
        wanted = f"{base or site_of(site)}{ROOT}/Users/{reply.body['id']}"
        assert reply.headers["Location"] == reply.body["meta"]["location"] == wanted


async def test_a_base_address_with_a_slash_may_come_before_another_slash(site: ScimSite) -> None:
    created = await site.call("POST", "//Users", ADA)
    assert created.status == 201
    user_id, group_id = created.body["id"], await add_group(site, "Staff")
    assert created.headers["Location"] == f"{site_of(site)}{ROOT}/Users/{user_id}"
    for path in (
        "//Users",
        f"///Users//{user_id}/",
        f"//Groups/{group_id}",
        "//Groups//",
        "//ServiceProviderConfig",
        "//ResourceTypes//User",
        f"//Schemas/{USER}",
    ):
        shown = await site.call("GET", path)
        assert shown.status == 200, path
        assert "//" not in str(shown.body.get("meta", {}).get("location", "")).removeprefix("http://")
        stranger = await site.call("GET", path, headers={"Authorization": "Bearer wrong"})
        assert stranger.error == (401, None), path
    assert (await site.call("PATCH", f"//Users//{user_id}", patch())).status == 200
    assert (await site.call("POST", "//Users//.search", {"schemas": [SEARCH]})).status == 200
    assert (await site.call("DELETE", f"//Users/{user_id}")).status == 204
    assert (await site.call("DELETE", "//Users")).status == 405


async def test_addresses_are_those_of_the_configured_site() -> None:
    everywhere = EdgeOptions(trusted_proxies=(ip_network("0.0.0.0/0"), ip_network("::/0")))
    address = "https://ai.example.org/gateway"
    async with serving_scim(options=everywhere, address=address) as site:
        created = await site.call("POST", "/Users", ADA, {"X-Forwarded-Host": "10.0.0.1:8080"})
        user_id = created.body["id"]
        assert created.headers["Location"] == f"{address}{ROOT}/Users/{user_id}"
        group_id = await add_group(site, "Staff", user_id)
        group = await site.ok("GET", f"/Groups/{group_id}")
        assert group["meta"]["location"] == f"{address}{ROOT}/Groups/{group_id}"
        assert group["members"][0]["$ref"] == f"{address}{ROOT}/Users/{user_id}"
        user = await site.ok("GET", f"/Users/{user_id}")
        assert user["groups"][0]["$ref"] == f"{address}{ROOT}/Groups/{group_id}"
        config = await site.ok("GET", "/ServiceProviderConfig")
        assert config["meta"]["location"] == f"{address}{ROOT}/ServiceProviderConfig"


async def test_skipped_members_are_told_in_a_header(site: ScimSite) -> None:
    ada, group_id = await add(site, "ada"), await add_group(site, "Staff")
    stale = [{"value": f"stale{number}"} for number in range(4)]
    body = patch({"op": "replace", "path": "members", "value": [*stale, {"value": ada}]})
    changed = await site.call("PATCH", f"/Groups/{group_id}", body)
    assert (changed.status, changed.body) == (204, None)
    warning = "members were skipped as no user has their id, 4: 'stale0', 'stale1', 'stale2', ..."
    assert changed.headers["X-Gateway-Warning"] == warning
    replaced = await site.call("PUT", f"/Groups/{group_id}", {"displayName": "Staff", "members": stale[:1]})
    assert (replaced.status, replaced.body["members"]) == (200, [])
    assert replaced.headers["X-Gateway-Warning"].endswith("1: 'stale0'")
    created = await site.call("POST", "/Groups", {"displayName": "Crew", "members": [*stale, {"value": ada}]})
    assert (created.status, [each["value"] for each in created.body["members"]]) == (201, [ada])

"""Tests for gatewayd.http.public.scim.discovery."""

from collections.abc import AsyncIterator

import pytest

from gatewayd.scim import discovery
from tests.fakes.accounts.scim_site import ROOT, ScimSite, serving_scim

USER = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"
DOCUMENTS = ["/ServiceProviderConfig", "/ResourceTypes", "/Schemas"]
EACH = ["/ResourceTypes/User", "/ResourceTypes/Group", f"/Schemas/{USER}", f"/Schemas/{GROUP}"]


@pytest.fixture
async def site() -> AsyncIterator[ScimSite]:
    async with serving_scim() as made:
        yield made


def base(site: ScimSite) -> str:
    return f"http://{site.client.host}:{site.client.port}"


async def test_what_is_supported_is_told(site: ScimSite) -> None:
    shown = await site.ok("GET", "/ServiceProviderConfig")
    assert shown == discovery.service_provider_config(base(site))
    assert shown["meta"]["location"] == f"{base(site)}{ROOT}/ServiceProviderConfig"


@pytest.mark.parametrize(
    ("path", "names"), [("/ResourceTypes", ["User", "Group"]), ("/Schemas", [USER, GROUP])]
)
async def test_documents_are_listed_and_shown_one_by_one(site: ScimSite, path: str, names: list[str]) -> None:
    listed = await site.ok("GET", path)
    assert listed["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:ListResponse"]
    assert (listed["totalResults"], listed["startIndex"], listed["itemsPerPage"]) == (2, 1, 2)
    assert [each["id"] for each in listed["Resources"]] == names
    for each in listed["Resources"]:
        address = each["meta"]["location"]
        assert await site.ok("GET", address.removeprefix(base(site) + ROOT)) == each


async def test_the_id_of_a_schema_is_found_in_any_case(site: ScimSite) -> None:
    assert (await site.ok("GET", f"/Schemas/{USER.upper()}"))["id"] == USER


@pytest.mark.parametrize("path", ["/ResourceTypes/Device", "/Schemas/urn:nothing", "/Schemas/User"])
async def test_what_there_is_not_is_not_found(site: ScimSite, path: str) -> None:
    assert (await site.call("GET", path)).error == (404, None)


@pytest.mark.parametrize("path", [*DOCUMENTS, *EACH])
async def test_documents_are_not_filtered(site: ScimSite, path: str) -> None:
    assert (await site.call("GET", f'{path}?filter=id eq "User"')).error == (403, None)
    assert (await site.call("GET", f"{path}?startIndex=x&count=0&attributes=id")).status == 200


@pytest.mark.parametrize("path", [*DOCUMENTS, *EACH])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_documents_are_not_written(site: ScimSite, path: str, method: str) -> None:
    reply = await site.call(method, path, {})
    assert reply.error == (405, None)
    assert set(reply.headers["Allow"].split(",")) == {"GET", "HEAD"}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("GET", "/"),
        ("POST", "/.search"),
        ("POST", "/.search/"),
        ("POST", "/Bulk"),
        *((method, "/Me") for method in ("GET", "POST", "PUT", "PATCH", "DELETE")),
    ],
)
async def test_what_is_not_done_here_is_said(site: ScimSite, method: str, path: str) -> None:
    reply = await site.call(method, path, {} if method != "GET" else None)
    assert reply.error == (501, None)
    assert f"cannot serve {path or '/'}: " in reply.body["detail"]

"""Tests for gatewayd.http.openapi."""

from aiohttp import web
from openapi_spec_validator import validate
from pydantic import BaseModel

from gatewayd.http.openapi import POLICY, describe
from gatewayd.http.routes import Access, Dialect, Route


class Inner(BaseModel):
    size: int


class Form(BaseModel):
    name: str
    inner: Inner


async def nothing(request: web.Request) -> web.StreamResponse:
    return web.Response()


def test_document_is_valid_and_names_policy_and_fields() -> None:
    rows = [
        Route("POST", "/things/{id:.+}", nothing, Access.ADMIN, "Change", request=Form, reply=Form),
        Route("GET", "/open", nothing, Access.PUBLIC, "Look"),
        Route("GET", "/maybe", nothing, Access.OPTIONAL, "Look"),
    ]
    document = describe(rows, title="t", version="1")
    validate(document)
    change = document["paths"]["/things/{id}"]["post"]
    assert change["parameters"][0]["name"] == "id"
    assert "administrator" in change["description"]
    assert change["security"] == [{"bearer": []}, {"key": []}]
    assert "security" not in document["paths"]["/open"]["get"]
    assert {} in document["paths"]["/maybe"]["get"]["security"]
    assert set(document["components"]["schemas"]) == {"Error", "ScimError", "Form", "Inner"}


def test_provisioning_has_a_credential_and_a_media_type_of_its_own() -> None:
    rows = [Route("POST", "/scim", nothing, Access.SCIM, "Make", Dialect.SCIM)]
    document = describe(rows, title="t", version="1")
    validate(document)
    make = document["paths"]["/scim"]["post"]
    assert make["security"] == [{"scim": []}]
    assert "SCIM token" in make["description"]
    assert list(make["requestBody"]["content"]) == ["application/scim+json"]
    failure = make["responses"]["default"]["content"]["application/scim+json"]["schema"]
    assert failure == {"$ref": "#/components/schemas/ScimError"}


def test_every_policy_has_its_sentence() -> None:
    assert set(POLICY) == set(Access)


def test_uploads_are_forms() -> None:
    row = Route("POST", "/files", nothing, Access.VERIFIED, "Upload", invites=True)
    document = describe([row], title="t", version="1")
    validate(document)
    content = document["paths"]["/files"]["post"]["requestBody"]["content"]
    assert content["multipart/form-data"]["schema"]["required"] == ["file"]

"""Tests for gatewayd.http.openapi."""

from typing import Any

import jsonschema
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from openapi_spec_validator import validate
from pydantic import BaseModel

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.errors import body_of
from gatewayd.http.middleware import dialect_of
from gatewayd.http.openapi import ERRORS, POLICY, describe_routes
from gatewayd.http.public.scim.routes import ScimGroupRoutes, ScimUserRoutes
from gatewayd.http.routes import ANTHROPIC_VERSION, Route, RouteAccess, RouteDialect
from gatewayd.http.schemas import EVENT_STREAM, INTEGER, TEXT, Reply, listed, record
from gatewayd.scim.renderer import ROOT


class Inner(BaseModel):
    size: int


class Form(BaseModel):
    name: str
    inner: Inner


def changed_thing() -> dict[str, Any]:
    return record({"inner": inner_thing}, name=TEXT, others=listed(changed_thing))


def inner_thing() -> dict[str, Any]:
    return record(size=INTEGER)


async def nothing(request: web.Request) -> web.StreamResponse:
    return web.Response()


def test_document_is_valid_and_names_policy_and_fields() -> None:
    rows = [
        Route(
            "POST",
            "/things/{id:.+}",
            nothing,
            RouteAccess.ADMIN,
            "Change",
            request=Form,
            reply=Reply(changed_thing),
        ),
        Route("GET", "/open", nothing, RouteAccess.PUBLIC, "Look"),
        Route("GET", "/maybe", nothing, RouteAccess.OPTIONAL, "Look"),
    ]
    document = describe_routes(rows, title="t", version="1")
    validate(document)
    change = document["paths"]["/things/{id}"]["post"]
    assert change["parameters"][0]["name"] == "id"
    assert "administrator" in change["description"]
    assert change["security"] == [{"bearer": []}, {"key": []}]
    assert "security" not in document["paths"]["/open"]["get"]
    assert {} in document["paths"]["/maybe"]["get"]["security"]
    assert set(document["components"]["schemas"]) == {
        *ERRORS.values(),
        "Form",
        "Inner",
        "ChangedThing",
        "InnerThing",
    }


def test_provisioning_has_a_credential_and_a_media_type_of_its_own() -> None:
    rows = [Route("POST", "/scim", nothing, RouteAccess.SCIM, "Make", RouteDialect.SCIM)]
    document = describe_routes(rows, title="t", version="1")
    validate(document)
    make = document["paths"]["/scim"]["post"]
    assert make["security"] == [{"scim": []}]
    assert "SCIM token" in make["description"]
    assert list(make["requestBody"]["content"]) == ["application/scim+json"]
    failure = make["responses"]["default"]["content"]["application/scim+json"]["schema"]
    assert failure == {"$ref": "#/components/schemas/ScimError"}


@pytest.mark.parametrize("dialect", list(ERRORS))
def test_failures_have_the_schema_of_the_body_that_is_sent(dialect: RouteDialect) -> None:
    rows = [
        Route(method, "/asked", nothing, RouteAccess.VERIFIED, "Ask", dialect) for method in ("GET", "POST")
    ]
    document = describe_routes(rows, title="t", version="1")
    validate(document)
    media_type = "application/scim+json" if dialect is RouteDialect.SCIM else "application/json"
    for row in rows:
        asked = document["paths"]["/asked"][row.method.lower()]
        schema = asked["responses"]["default"]["content"][media_type]["schema"]
        for sent in {dialect, dialect_of(row, make_mocked_request("GET", "/", {ANTHROPIC_VERSION: "1"}))}:
            if sent is not dialect and row.method == "POST":
                continue
            body = body_of(GatewayError(ErrorKind.NOT_FOUND, "cannot find it"), sent)
            jsonschema.validate(body, {**schema, "components": document["components"]})
    wrong = {"nothing": "of all this"}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, {**schema, "components": document["components"]})


def test_a_reply_has_its_schema_and_its_media_types() -> None:
    reply = Reply(changed_thing, (EVENT_STREAM,))
    query = {"page": "Number of the page."}
    row = Route("GET", "/things", nothing, RouteAccess.PUBLIC, "List", reply=reply, query=query)
    document = describe_routes([row], title="t", version="1")
    validate(document)
    things = document["paths"]["/things"]["get"]
    content = things["responses"]["200"]["content"]
    assert content[EVENT_STREAM] == {}
    schema = {**content["application/json"]["schema"], "components": document["components"]}
    jsonschema.validate({"name": "n", "others": [{"name": "m", "others": [], "inner": {"size": 1}}]}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"name": "n", "others": [{"name": 1, "others": []}]}, schema)
    assert [(each["name"], each["in"]) for each in things["parameters"]] == [("page", "query")]


def test_each_success_has_its_status_and_its_body() -> None:
    row = Route(
        "DELETE", "/gone", nothing, RouteAccess.SCIM, "Remove", RouteDialect.SCIM, takes=(), statuses=(204,)
    )
    refused = Route("POST", "/never", nothing, RouteAccess.ADMIN, "Not supported", takes=(), statuses=())
    document = describe_routes([row, refused], title="t", version="1")
    validate(document)
    gone, never = document["paths"]["/gone"]["delete"], document["paths"]["/never"]["post"]
    assert set(gone["responses"]) == {"204", "default"}
    assert "content" not in gone["responses"]["204"]
    assert set(never["responses"]) == {"default"}
    assert "requestBody" not in gone
    assert "requestBody" not in never


@pytest.mark.parametrize(
    ("method", "path", "statuses"),
    [
        ("POST", "/Groups", {"201"}),
        ("PATCH", "/Groups/{id}", {"200", "204"}),
        ("DELETE", "/Groups/{id}", {"204"}),
        ("DELETE", "/Users/{id}", {"204"}),
        ("PATCH", "/Users/{id}", {"200"}),
    ],
)
def test_provisioning_tells_its_statuses(method: str, path: str, statuses: set[str]) -> None:
    rows = [*ScimUserRoutes(None, "p").routes(), *ScimGroupRoutes(None, "p").routes()]  # type: ignore[arg-type]
    paths = describe_routes(rows, title="t", version="1")["paths"]
    assert set(paths[ROOT + path][method.lower()]["responses"]) == {*statuses, "default"}


def test_every_policy_has_its_sentence() -> None:
    assert set(POLICY) == set(RouteAccess)


def test_uploads_are_forms() -> None:
    row = Route("POST", "/files", nothing, RouteAccess.VERIFIED, "Upload", invites=True)
    document = describe_routes([row], title="t", version="1")
    validate(document)
    content = document["paths"]["/files"]["post"]["requestBody"]["content"]
    assert content["multipart/form-data"]["schema"]["required"] == ["file"]

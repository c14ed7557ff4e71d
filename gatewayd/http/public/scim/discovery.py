"""Routes of SCIM discovery (RFC 7644, 4), and refusals of unsupported endpoints."""

from collections.abc import Sequence
from typing import Final

from aiohttp import web

from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.http.context import base_url
from gatewayd.http.public.scim.messages import list_reply, scim_reply
from gatewayd.http.public.scim.routes import row
from gatewayd.http.reply_schemas import provisioning
from gatewayd.http.routes import Route
from gatewayd.http.schemas import answers
from gatewayd.scim.discovery import resource_types, schemas, service_provider_config
from gatewayd.scim.records import Resource
from gatewayd.scim.renderer import ROOT

# RFC 7644, 3.4.2.1, 3.4.3, 3.7 and 3.11.
UNSUPPORTED_ROUTES: Final = (
    ("GET", ""),
    ("POST", "/.search"),
    ("POST", "/Bulk"),
    ("GET", "/Me"),
    ("POST", "/Me"),
    ("PUT", "/Me"),
    ("PATCH", "/Me"),
    ("DELETE", "/Me"),
)


class ScimDiscoveryRoutes:
    """Routes of the service provider configuration, resource types and schemas."""

    def routes(self) -> Sequence[Route]:
        """Return the rows, including refusing ones for unsupported endpoints."""
        return [
            row(
                "GET",
                "/ServiceProviderConfig",
                self.show_config,
                "Show the service provider configuration",
                200,
            ),
            row("GET", "/ResourceTypes", self.list_resource_types, "List resource types", 200),
            row("GET", "/ResourceTypes/{id}", self.show_resource_type, "Show a resource type", 200),
            row("GET", "/Schemas", self.list_schemas, "List schemas", 200),
            row("GET", "/Schemas/{id}", self.show_schema, "Show a schema", 200),
            *(
                row(method, path, self.refuse, "Refuse an unsupported operation")
                for method, path in UNSUPPORTED_ROUTES
            ),
        ]

    @answers(provisioning.scim_abilities)
    async def show_config(self, request: web.Request) -> web.StreamResponse:
        """Answer the ServiceProviderConfig."""
        _check(request)
        return scim_reply(service_provider_config(base_url(request)))

    @answers(provisioning.scim_resource_types)
    async def list_resource_types(self, request: web.Request) -> web.StreamResponse:
        """Answer a ListResponse of ResourceTypes."""
        return await _listed(request, resource_types(base_url(request)))

    @answers(provisioning.scim_resource_type)
    async def show_resource_type(self, request: web.Request) -> web.StreamResponse:
        """Answer a ResourceType; its id is User or Group."""
        return _render(request, "resource type", resource_types(base_url(request)))

    @answers(provisioning.scim_schemas)
    async def list_schemas(self, request: web.Request) -> web.StreamResponse:
        """Answer a ListResponse of Schemas."""
        return await _listed(request, schemas(base_url(request)))

    @answers(provisioning.scim_schema)
    async def show_schema(self, request: web.Request) -> web.StreamResponse:
        """Answer a Schema; its id is a URN, case-insensitive."""
        return _render(request, "schema", schemas(base_url(request)))

    async def refuse(self, request: web.Request) -> web.StreamResponse:
        """Refuse bulk requests, `/Me` and a search over all types (RFC 7644, 3.4.2.1, 3.7, 3.11)."""
        raise GatewayError(
            ErrorKind.INVALID_REQUEST,
            f"cannot serve {request.path.removeprefix(ROOT) or '/'}: it is not supported",
            code="not_implemented",
        )


async def _listed(request: web.Request, documents: Sequence[Resource]) -> web.StreamResponse:
    _check(request)
    return await list_reply(documents, len(documents))


def _render(request: web.Request, what: str, documents: Sequence[Resource]) -> web.StreamResponse:
    _check(request)
    wanted = request.match_info["id"]
    for document in documents:
        if document["id"].lower() == wanted.lower():
            return scim_reply(document)
    raise not_found(what, wanted)


def _check(request: web.Request) -> None:
    if any(name.lower() == "filter" for name in request.query):
        raise GatewayError(ErrorKind.FORBIDDEN, "cannot filter discovery documents", param="filter")

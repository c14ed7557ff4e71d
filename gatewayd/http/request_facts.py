"""What plugins are told about an HTTP request."""

from aiohttp import web

from gatewayd.http.context import base_url, client_address, request_id
from gatewayd.plugins.runtime.context import RequestFacts


def facts_of(request: web.Request) -> RequestFacts:
    """Return the facts of a request, headers as they were sent."""
    return RequestFacts(
        method=request.method,
        path=request.path,
        query=request.query_string,
        headers=tuple(request.headers.items()),
        client=client_address(request),
        base_url=base_url(request),
        request_id=request_id(request),
    )

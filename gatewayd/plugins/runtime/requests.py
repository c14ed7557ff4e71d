"""Maker of `__request__`: a starlette Request with the facts of the HTTP request of a call."""

from typing import Any

from gatewayd.plugins.open_webui.modules.completions import CALL_SCOPE_KEY
from gatewayd.plugins.open_webui.placeholders import load_web_module
from gatewayd.plugins.runtime.context import CallScope, RequestFacts
from gatewayd.urls import split_url


def make_request(facts: RequestFacts, app: Any, call: CallScope | None = None) -> Any:
    """Return a Request with the method, address, headers and cookies of `facts`, and an empty body.

    `call` identifies the call for functions that receive the request, such as `generate_chat_completion`.
    Raises not_configured when starlette is not installed.
    """
    scope = _asgi_scope(facts)
    scope["app"] = app
    if call is not None:
        scope[CALL_SCOPE_KEY] = call
    return load_web_module("starlette.requests").Request(scope, _receive)


def _asgi_scope(facts: RequestFacts) -> dict[str, Any]:
    base = split_url(facts.base_url)
    scheme = base.scheme or "http"
    headers = [(name, value) for name, value in facts.headers if name.lower() != "host"]
    # Starlette builds the URL from the host header, which a proxy may have replaced.
    headers.append(("host", base.netloc or "localhost"))
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": facts.method,
        "scheme": scheme,
        "path": base.path.rstrip("/") + facts.path,
        "raw_path": (base.path.rstrip("/") + facts.path).encode(),
        "query_string": facts.query.encode(),
        "root_path": base.path.rstrip("/"),
        "headers": [
            (name.lower().encode(), value.encode("utf-8", "surrogateescape")) for name, value in headers
        ],
        "client": (facts.client, 0) if facts.client else None,
        "server": (base.hostname or "localhost", base.port or (443 if scheme == "https" else 80)),
        "state": {},
    }


async def _receive() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}

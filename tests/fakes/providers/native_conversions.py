"""What sources of other protocols get of a chat request: outcomes of their converters, for the manual."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from gatewayd.dialects.bedrock import request as bedrock
from gatewayd.dialects.gemini import request as gemini
from gatewayd.dialects.responses import upstream_request as responses
from gatewayd.errors import GatewayError
from tests.fakes.providers.fields import Sample

Object = Mapping[str, Any]
Convert = Callable[[Object], Object]

CONVERTERS: Final[Mapping[str, Convert]] = {
    "responses": lambda body: responses.to_request(body, responses.ResponsesOptions("acme"), []),
    "gemini": lambda body: gemini.to_request(body, "gemini-3-flash", []),
    "bedrock": lambda body: bedrock.to_request(body, "claude-opus-4-6", []),
}
"""Converters of chat requests by the columns of the tables."""


def outcome(convert: Convert, sample: Sample) -> str:
    """Return "same", "converted", "left out" or "refused" for what a sample is about."""
    try:
        before, after = convert({"model": "m", **sample.without}), convert({"model": "m", **sample.request})
    except GatewayError:
        return "refused"
    if before == after:
        return "left out"
    changed = {
        name: after.get(name) for name in after.keys() | before.keys() if after.get(name) != before.get(name)
    }
    is_same = all(sample.request.get(name) == value for name, value in changed.items())
    return "same" if is_same else "converted"

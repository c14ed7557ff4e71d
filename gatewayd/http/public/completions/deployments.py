"""Paths of Azure, in which the deployment stands for the model."""

from collections.abc import Mapping
from typing import Any, Final

from aiohttp import web

BASE: Final = "/openai/deployments/{id:.+}"
"""Base path of a deployment; its id is the id of a model, which may have slashes."""


def with_deployment(request: web.Request, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a body with the model of the path, which goes before its own; elsewhere the body itself."""
    deployment = request.match_info.get("id")
    return body if deployment is None else {**body, "model": deployment}

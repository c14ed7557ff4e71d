"""A SCIM service that answers by the book, and whose answers tests replace."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gatewayctl.scimcheck.common import ERROR_SCHEMA, LIST_SCHEMA
from gatewayctl.scimcheck.read_steps import URN
from gatewayctl.scimcheck.records import Ask, ScimAnswer

SCIM_HEADERS = {"content-type": "application/scim+json"}


def reply(status: int, body: Any = None, **headers: str) -> ScimAnswer:
    """Return an answer of the service."""
    content = b"" if body is None else json.dumps(body).encode()
    return ScimAnswer(
        status, {**SCIM_HEADERS, **{name.replace("_", "-"): text for name, text in headers.items()}}, content
    )


def listed(*resources: Mapping[str, Any]) -> ScimAnswer:
    """Return a list."""
    return reply(
        200, {"schemas": [LIST_SCHEMA], "totalResults": len(resources), "Resources": list(resources)}
    )


def failed(status: int, detail: str = "cannot", **more: str) -> ScimAnswer:
    """Return an error of the service."""
    body = {"schemas": [ERROR_SCHEMA], "status": str(status), "detail": detail}
    scim_type = more.pop("scim_type", None)
    return reply(status, {**body, **({"scimType": scim_type} if scim_type else {})}, **more)


@dataclass
class Service:
    """Answers as a good gateway does; `replies` has what to answer instead, by method and path."""

    replies: dict[tuple[str, str], Callable[[Ask], ScimAnswer]] = field(default_factory=dict)
    asked: list[Ask] = field(default_factory=list)
    members: list[str] = field(default_factory=list)
    name: str = ""

    def send(self, ask: Ask) -> ScimAnswer:
        self.asked.append(ask)
        instead = self.replies.get((ask.method, ask.path))
        if instead is not None:
            return instead(ask)
        if ask.token != "":
            return failed(401, www_authenticate="Bearer")
        return self._read(ask) if ask.method == "GET" else self._write(ask)

    def _read(self, ask: Ask) -> ScimAnswer:
        match ask.path:
            case "/ServiceProviderConfig":
                features = {"patch": {"supported": True}, "filter": {"supported": True}}
                return reply(200, {**features, "bulk": {"supported": False, "maxOperations": 0}})
            case "/ResourceTypes":
                return listed({"endpoint": "/Users"}, {"endpoint": "/Groups"})
            case "/Schemas":
                return listed({"id": f"{URN}:User"}, {"id": f"{URN}:Group"})
            case "/Users" if ask.query.get("filter", "").count('"') == 1:
                return failed(400, scim_type="invalidFilter")
            case "/Users" if "filter" in ask.query:
                return listed()
            case "/Users":
                return listed({"id": "u1", "userName": "ada@example.org"})
            case "/Groups":
                return listed({"id": "g0", "displayName": "old"})
            case "/Groups/g1" if self.name:
                members = [{"value": member} for member in self.members]
                return reply(200, {"id": "g1", "displayName": self.name, "members": members})
            case _:
                return failed(404)

    def _write(self, ask: Ask) -> ScimAnswer:
        body = ask.body or {}
        if ask.method == "POST":
            self.name = body["displayName"]
            return reply(201, {"id": "g1"}, location="https://h/Groups/g1")
        if ask.method == "DELETE":
            self.name = ""
            return reply(204)
        [operation] = body["Operations"]
        match operation["op"]:
            case "Add":
                self.members = [each["value"] for each in operation["value"]]
            case "Remove":
                self.members = []
            case "replace":
                self.name = operation["value"]["displayName"]
        return reply(204)

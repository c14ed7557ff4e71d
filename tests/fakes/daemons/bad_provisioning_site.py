"""A gateway that is sent bad input by an identity provider: every answer is looked at, the log at the end."""

import contextlib
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.http.raw_http import Kept, Reply, exchange

ROOT = "/api/v1/scim/v2"
TOKEN = "scim-canary-0123456789abcdef0123456789abcdef"
PROVIDER = "idp"
SCIM_JSON = "application/scim+json"
USER = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"
PATCH_OP = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
LIST = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"
SECONDS = 10.0
"""How long an answer to anything may take."""

LONGEST_LINE = 16_000

SUCCESSES = {200, 201, 204}
REFUSALS = {400, 401, 403, 404, 405, 409, 413, 415, 501}
TYPES = {
    *("invalidFilter", "tooMany", "uniqueness", "mutability", "invalidSyntax"),
    *("invalidPath", "noTarget", "invalidValue"),
}
TYPED = {400, 409}
"""Refusals that say what kind they are (RFC 7644 section 3.12)."""


@dataclass
class Site:
    """A running gateway, and the requests that it refused: what they were, by their id."""

    daemon: Daemon
    kept: Kept = field(init=False)
    numbers: Iterator[int] = field(default_factory=count)
    refused: dict[str, tuple[int, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kept = Kept(self.daemon.base_url)

    def close(self) -> None:
        """Close the connections to the daemon."""
        self.kept.close()

    def send(
        self,
        method: str,
        path: str,
        body: bytes | list[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request with the token and check its answer."""
        typed = {} if body is None else {"Content-Type": SCIM_JSON}
        sent = {"Authorization": f"Bearer {TOKEN}", **typed, **(headers or {})}
        reply = self.kept.send(method, ROOT + path, body, sent, seconds=SECONDS)
        self.note(reply, f"{method} {path[:200]} {body[:300]!r}" if body else f"{method} {path[:200]}")
        return reply

    def ask(self, method: str, path: str, body: Any = None) -> Reply:
        """Send a request whose body is JSON."""
        return self.send(method, path, None if body is None else json.dumps(body).encode())

    def raw(self, head: str, body: bytes = b"") -> list[Reply]:
        """Send a head with the token and a body as they are, then close; check the answers."""
        signed = f"Authorization: Bearer {TOKEN}\r\nHost: gateway\r\nConnection: close\r\n\r\n"
        replies = exchange(self.daemon.base_url, (head + signed).encode("latin-1") + body, SECONDS)
        for reply in replies:
            self.note(reply, head[:200])
        return replies

    def note(self, reply: Reply, what: str) -> None:
        """Check that an answer is a success or a clear refusal, and remember the latter."""
        assert reply.status in SUCCESSES | REFUSALS, (what, reply)
        assert TOKEN.encode() not in reply.body, (what, reply)
        if reply.status == 204:
            assert reply.body == b"", (what, reply)
            return
        assert reply.headers["content-type"] == SCIM_JSON, (what, reply)
        if reply.status in SUCCESSES or what.startswith("HEAD"):
            return
        self.refused[reply.headers["x-request-id"]] = (reply.status, what)
        assert_error(reply, what)

    def add_user(self, **more: Any) -> str:
        """Provision a user and return its path."""
        body = {"schemas": [USER], "userName": self.new_name(), **more}
        reply = self.ask("POST", "/Users", body)
        assert reply.status == 201, reply
        return f"/Users/{reply.json['id']}"

    def add_group(self, *members: str) -> str:
        """Provision a group of users by their paths and return its path."""
        listed = [{"value": member.rpartition("/")[2]} for member in members]
        body = {"schemas": [GROUP], "displayName": f"g{next(self.numbers)}", "members": listed}
        reply = self.ask("POST", "/Groups", body)
        assert reply.status == 201, reply
        return f"/Groups/{reply.json['id']}"

    def new_name(self) -> str:
        return f"u{next(self.numbers)}@example.org"

    def shown(self, path: str) -> Any:
        """Return a resource, which must be a whole one."""
        reply = self.ask("GET", path)
        assert reply.status == 200, reply
        assert_whole(reply.json)
        return reply.json

    def found(self, text: str, noun: str = "/Users") -> Reply:
        """Search by a SearchRequest, and in the query if it fits there, which must find the same."""
        posted = self.ask("POST", f"{noun}/.search", {"filter": text})
        path = f"{noun}?filter={quote(text, safe='')}"
        if len(path) < LONGEST_LINE:
            got = self.send("GET", path)
            assert (got.status, got.json) == (posted.status, posted.json)
        return posted

    def assert_lists(self) -> None:
        """Check that everything can be listed, each once and whole."""
        for noun in ("/Users", "/Groups"):
            start, seen = 1, []
            while True:
                page = self.ask("GET", f"{noun}?startIndex={start}&count=200").json
                assert page["schemas"] == [LIST]
                assert page["itemsPerPage"] == len(page["Resources"])
                for resource in page["Resources"]:
                    assert_whole(resource)
                seen += [resource["id"] for resource in page["Resources"]]
                start += len(page["Resources"])
                if not page["Resources"]:
                    break
            assert len(seen) == len(set(seen)) == page["totalResults"]

    def assert_told(self) -> None:
        """Check that each refusal has its two lines in the log, and that no secret is in it."""
        assert self.daemon.process.poll() is None
        assert self.ask("GET", "/nothing").status == 404
        self._wait_for_line(list(self.refused)[-1])
        log = "".join(self.daemon.log)
        told, audited = _ids(log, "gatewayd.http.errors"), _ids(log, "gatewayd.audit")
        assert {name: told[name] for name in self.refused if told[name] != 1} == {}
        # What no row takes is nobody's operation.
        routed = {name for name, (status, _) in self.refused.items() if status not in {404, 405}}
        assert {name: audited[name] for name in routed if audited[name] != 1} == {}
        assert max(audited.values()) == 1
        assert "Traceback" not in log
        assert " error " not in log
        assert TOKEN not in log
        assert max(map(len, log.splitlines())) < 12_000

    def _wait_for_line(self, words: str) -> None:
        deadline = time.monotonic() + 10
        while words not in "".join(self.daemon.log) and time.monotonic() < deadline:
            time.sleep(0.02)


def _ids(log: str, logger: str) -> Counter[str]:
    """Return the ids of the requests on the lines of a logger."""
    lines = [line for line in log.splitlines() if f" {logger}: " in line]
    return Counter(line.partition("request_id=")[2].split(" ")[0] for line in lines)


def assert_error(reply: Reply, what: str = "") -> None:
    """Check that a refusal is a whole SCIM error."""
    body = reply.json
    assert body.keys() <= {"schemas", "status", "scimType", "detail"}, (what, reply)
    assert (body["schemas"], body["status"]) == ([ERROR], str(reply.status)), (what, reply)
    assert body["detail"], (what, reply)
    assert len(reply.body) < 4096, (what, reply)
    if reply.status in TYPED:
        assert body["scimType"] in TYPES, (what, reply)


def assert_whole(resource: Any) -> None:
    """Check that a user or a group is shown with everything it must have, in the right types."""
    kind = resource["meta"]["resourceType"]
    assert resource["schemas"] == [{"User": USER, "Group": GROUP}[kind]]
    assert resource["meta"]["location"].endswith(f"{ROOT}/{kind}s/{resource['id']}")
    known = {"schemas", "id", "meta", "externalId", "displayName"}
    if kind == "Group":
        assert resource.keys() <= known | {"members"}
        assert resource["displayName"]
        assert all(member["value"] and member["type"] == "User" for member in resource.get("members", ()))
        return
    assert resource.keys() <= known | {"userName", "name", "emails", "active", "groups", "roles"}
    assert "@" in resource["userName"]
    assert isinstance(resource["active"], bool)
    emails = resource.get("emails", [])
    assert all(isinstance(email["value"], str) and email["type"] for email in emails)
    assert not emails or sum(email["primary"] for email in emails) == 1
    roles = [text for role in resource.get("roles", []) for name, text in role.items() if name != "primary"]
    texts = [resource.get("displayName", "x"), *roles, *resource.get("name", {"formatted": "x"}).values()]
    assert all(isinstance(text, str) and text for text in texts)


@contextlib.contextmanager
def opened_provoked(state: Path, **settings: str) -> Iterator[Site]:
    """Run the gateway until the end of the block; look at what it holds then, and at its log."""
    given = {"SCIM_ENABLED": "true", "SCIM_TOKEN": TOKEN, "SCIM_AUTH_PROVIDER": PROVIDER, **settings}
    with running_daemon(state, **given) as daemon:
        form = {"name": "Root", "email": "root@example.org", "password": "correct horse"}
        daemon.call("POST", "/api/v1/auths/signup", form)
        with contextlib.closing(Site(daemon)) as site:
            yield site
            site.assert_lists()
            site.assert_told()

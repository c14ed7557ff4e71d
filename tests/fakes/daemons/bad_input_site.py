"""A gateway that is fed bad input: each refusal and each secret is remembered and looked for in the log."""

import contextlib
import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gatewayd.http.routes import BASES
from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.http.raw_http import Kept, Reply, exchange
from tests.fakes.providers.all_routes_upstream import Everything
from tests.fakes.providers.background_upstream import Provider, background_upstream
from tests.fakes.providers.upstream import NO_SUCH_PATH

PASSWORD = "correct-horse-canary"
BODY_LIMIT = 2 * 1024 * 1024
SMALL_LIMIT = 1024 * 1024
AUTHS = "/api/v1/auths"
CHATS = tuple(f"{base}/chat/completions" for base in BASES)
MESSAGES = ("/api/v1/messages", "/api/message", "/v1/messages", "/ollama/v1/messages")
RUNTIME = "/ollama/api/"
SCIM = "/api/v1/scim/v2"
SIGN_INS = tuple(f"POST /api/v1/auths/{name}" for name in ("signin", "signup", "invitations/accept", "link"))
MESSAGE_ID = "m1"
ACTION = """
from pydantic import BaseModel


class Action:
    class Valves(BaseModel):
        a: int = 1

    class UserValves(BaseModel):
        b: int = 1

    def action(self, body):
        return body
"""
TOOL = ACTION.replace("Action", "Tools").replace("action(self, body)", "look(self, body: dict)")
UNROUTED = {"route_not_found", "endpoint_not_found", "method_not_allowed"}
"""The codes of refusals for which no row, and so no dialect, was found."""
CANARY = b"canary-in-a-header"
AUDIT = " gatewayd.audit: "
PROVIDERS = """
[[providers]]
name = "hosted"
base_url = "{url}/v1"
prefix = "o."

[[providers]]
name = "native"
kind = "anthropic"
base_url = "{url}"
prefix = "a."

[[providers]]
name = "runtime"
kind = "ollama"
base_url = "{url}"
prefix = "l."
"""


@dataclass
class Site:
    """A running gateway, an administrator who may have keys, and what was refused so far."""

    daemon: Daemon
    provider: Provider
    kept: Kept = field(init=False)
    admin: str = ""
    admin_id: str = ""
    key: str = ""
    group: str = ""
    ids: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=lambda: {PASSWORD, "$argon2"})

    def __post_init__(self) -> None:
        self.kept = Kept(self.daemon.base_url)

    def close(self) -> None:
        """Close the connections to the daemon."""
        self.kept.close()

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        token: str | None = None,
        seconds: float = 60.0,
    ) -> Reply:
        """Send a request as the administrator, or with another credential, and note a refusal."""
        sent = {"Authorization": f"Bearer {self.admin if token is None else token}", **(headers or {})}
        if sent["Authorization"] == "Bearer ":
            del sent["Authorization"]
        reply = self.kept.send(method, path, body, sent, seconds=seconds)
        self.note(reply, f"{method} {path[:200]}")
        return reply

    def raw(self, *parts: bytes) -> list[Reply]:
        """Send bytes as they are and note the refusals."""
        replies = exchange(self.daemon.base_url, b"".join(parts))
        for reply in replies:
            self.note(reply, repr(b"".join(parts)[:200]))
        return replies

    def note(self, reply: Reply, what: str) -> None:
        """Check that a failure is a clear one, and remember its request id."""
        assert reply.status < 500, (what, reply)
        assert "x-request-id" in reply.headers, (what, reply)
        assert reply.headers.get("server") == "gatewayd", (what, reply)
        if reply.status < 400:
            return
        self.refused[reply.headers["x-request-id"]] = what
        if not reply.body and what.startswith("HEAD"):
            return
        assert reply.headers["content-type"].startswith("application/json"), (what, reply)
        assert_refusal(what.partition(" ")[2].partition("?")[0], reply)

    def described(self) -> Any:
        """Return the API description without provisioning, which this administrator may not use."""
        document = self.daemon.call("GET", "/openapi.json")[1]
        paths = {path: rows for path, rows in document["paths"].items() if not path.startswith(SCIM)}
        return {**document, "paths": paths}

    def filled(self, template: str) -> str:
        """Return a path to something that exists."""
        noun = next((noun for noun in self.ids if f"/{noun}/" in template), "")
        values = {
            "id": self.ids.get(noun, self.admin_id),
            "chat_id": self.ids["chats"],
            "message_id": MESSAGE_ID,
            "action_id": self.ids["functions"],
            "user_id": self.admin_id,
            "name": "a.txt",
            "digest": "sha256:" + "0" * 64,
        }
        return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], "0"), template)

    def is_well(self) -> bool:
        """Tell whether the daemon lives and answers."""
        return self.daemon.process.poll() is None and self.daemon.call("GET", "/health")[0] == 200

    def assert_told(self) -> None:
        """Check that each refusal has one line in the log beside the audit's, and that it holds no traceback
        and no secret. The refused sign-ins of an address have one line a minute for each path."""
        assert self.is_well()
        assert self.send("GET", "/nothing").status == 404
        self._wait_for_line(list(self.refused)[-1])
        log = "".join(self.daemon.log)
        counts: dict[str, int] = dict.fromkeys(self.refused, 0)
        for line in log.splitlines():
            name = line.partition("request_id=")[2].split(" ")[0]
            counts[name] = counts.get(name, 0) + (AUDIT not in line)
        seen = {what for name, what in self.refused.items() if counts[name]}
        wrong = {
            what: counts[name]
            for name, what in self.refused.items()
            if counts[name] != 1 and (counts[name] or what not in seen or not what.startswith(SIGN_INS))
        }
        assert wrong == {}, wrong
        assert "Traceback" not in log
        assert [line for line in log.splitlines() if " error gatewayd." in line] == []
        assert [secret for secret in (*self.secrets, CANARY.decode()) if secret in log] == []
        assert max(map(len, log.splitlines())) < 12_000

    def _wait_for_line(self, words: str) -> None:
        deadline = time.monotonic() + 10
        while words not in "".join(self.daemon.log) and time.monotonic() < deadline:
            time.sleep(0.02)


@contextlib.contextmanager
def opened_site(folder: Path, body_limit: int = BODY_LIMIT, **more: str) -> Iterator[Site]:
    """Run a gateway over a scripted provider, with an administrator and a key; check its log at the end."""
    with background_upstream(kind=Everything) as provider:
        configuration = folder / "gatewayd.toml"
        configuration.write_text(PROVIDERS.format(url=provider.url))
        settings = {"ENV": "dev", "REQUEST_BODY_LIMIT": str(body_limit), "ENABLE_API_KEYS": "true"}
        settings |= {"ENABLE_FORWARD_USER_INFO_HEADERS": "true", "GLOBAL_LOG_LEVEL": "DEBUG"}
        with (
            running_daemon(folder / "state", "-f", str(configuration), **settings, **more) as daemon,
            contextlib.closing(Site(daemon, provider)) as made,
        ):
            _prepare(made)
            yield made
            made.assert_told()


def _prepare(site: Site) -> None:
    """Make the first administrator, a group that may have keys, and a key."""
    form = {"name": "Root", "email": "root@example.org", "password": PASSWORD}
    session = site.daemon.call("POST", f"{AUTHS}/signup", form)[1]
    site.admin, site.admin_id = session["token"], session["id"]
    group = {"name": "g", "description": "", "permissions": {"features": {"api_keys": True}}}
    site.group = json.loads(site.send("POST", "/api/v1/groups/create", dumps(group)).body)["id"]
    site.ids = {"groups": site.group, "chats": _add_chat(site)}
    for family, source in (("functions", ACTION), ("tools", TOOL)):
        form = {"id": family, "name": family, "content": source, "meta": {"description": ""}}
        assert site.send("POST", f"/api/v1/{family}/create", dumps(form)).status == 200
        site.ids[family] = family
    members = {"user_ids": [site.admin_id]}
    site.send("POST", f"/api/v1/groups/id/{site.group}/users/add", dumps(members))
    site.key = json.loads(site.send("POST", f"{AUTHS}/api_key", dumps({})).body)["api_key"]
    site.secrets |= {site.admin, site.key}


def _add_chat(site: Site) -> str:
    node = {"id": MESSAGE_ID, "parentId": None, "childrenIds": [], "role": "user", "content": "hi"}
    form = {"chat": {"title": "T", "history": {"currentId": MESSAGE_ID, "messages": {MESSAGE_ID: node}}}}
    return str(site.send("POST", "/api/v1/chats/new", dumps(form)).json["id"])


def is_message_path(path: str) -> bool:
    """Tell whether a path speaks the messages dialect."""
    is_batch = "/messages/batches" in path
    return is_batch or path.rstrip("/").removesuffix("/count_tokens") in MESSAGES


def assert_refusal(path: str, reply: Reply) -> None:
    """Check that the body of a refusal has the shape of the dialect that the path speaks."""
    body = reply.json
    if path.startswith(RUNTIME) and NO_SUCH_PATH.encode() in reply.body:
        # A runtime's own refusal passes as it is (4.5).
        return
    assert body["detail"], (path, reply)
    error = body["error"]
    is_routed = not (isinstance(error, dict) and error.get("code") in UNROUTED)
    if is_message_path(path):
        assert body.keys() == {"type", "error", "detail"}, (path, reply)
        assert body["type"] == "error", (path, reply)
        assert error.keys() - {"code"} == {"type", "message"}, (path, reply)
        assert error["message"] == body["detail"], (path, reply)
        assert reply.headers["request-id"] == reply.headers["x-request-id"], (path, reply)
    elif path.startswith(RUNTIME) and is_routed:
        assert body.keys() == {"error", "detail"}, (path, reply)
        assert error == body["detail"], (path, reply)
    else:
        assert error.keys() == {"message", "type", "param", "code"}, (path, reply)
        assert error["message"], (path, reply)


def dumps(value: Any) -> bytes:
    """Return a value as JSON."""
    return json.dumps(value).encode()


def chat(model_id: str, **fields: Any) -> dict[str, Any]:
    """Return a chat request."""
    return {"model": model_id, "messages": [{"role": "user", "content": "hi"}], **fields}

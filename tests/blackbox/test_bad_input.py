"""Bad input against the real daemon: always a clear refusal in JSON, one line in the log, never a 500.

Each refusal that a test provokes is remembered; the last tests look for its line, and for every secret that
was sent, in what the daemon printed.
"""

import base64
import contextlib
import hashlib
import hmac
import json
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.background import background_upstream
from tests.fakes.daemon import Daemon, running_daemon
from tests.fakes.wire import Reply, connected, exchange, parse_replies, read_to_end, send

PASSWORD = "correct-horse-canary"
BODY_LIMIT = 2 * 1024 * 1024
SMALL_LIMIT = 1024 * 1024
AUTHS = "/api/v1/auths"
CHATS = ("/api/chat/completions", "/api/v1/chat/completions", "/v1/chat/completions")
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
    admin: str = ""
    admin_id: str = ""
    key: str = ""
    group: str = ""
    refused: dict[str, str] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=lambda: {PASSWORD})

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        token: str | None = None,
    ) -> Reply:
        """Send a request as the administrator, or with another credential, and note a refusal."""
        sent = {"Authorization": f"Bearer {self.admin if token is None else token}", **(headers or {})}
        if sent["Authorization"] == "Bearer ":
            del sent["Authorization"]
        reply = send(self.daemon.base_url, method, path, body, sent)
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
        assert reply.json["detail"], (what, reply)
        error = reply.json["error"]
        assert error.keys() == {"message", "type", "param", "code"}, (what, reply)
        assert error["message"], (what, reply)

    def is_well(self) -> bool:
        """Tell whether the daemon lives and answers."""
        return self.daemon.process.poll() is None and self.daemon.call("GET", "/health")[0] == 200


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("s")
    with background_upstream() as provider:
        configuration = folder / "gatewayd.toml"
        configuration.write_text(PROVIDERS.format(url=provider.url))
        settings = {"ENV": "dev", "REQUEST_BODY_LIMIT": str(BODY_LIMIT), "ENABLE_API_KEYS": "true"}
        with running_daemon(folder / "state", "-f", str(configuration), **settings) as daemon:
            made = Site(daemon)
            prepare(made)
            yield made


def prepare(site: Site) -> None:
    """Make the first administrator, a group that may have keys, and a key."""
    form = {"name": "Root", "email": "root@example.org", "password": PASSWORD}
    session = site.daemon.call("POST", f"{AUTHS}/signup", form)[1]
    site.admin, site.admin_id = session["token"], session["id"]
    group = {"name": "g", "description": "", "permissions": {"features": {"api_keys": True}}}
    site.group = json.loads(site.send("POST", "/api/v1/groups/create", dumps(group)).body)["id"]
    members = {"user_ids": [site.admin_id]}
    site.send("POST", f"/api/v1/groups/id/{site.group}/users/add", dumps(members))
    site.key = json.loads(site.send("POST", f"{AUTHS}/api_key", dumps({})).body)["api_key"]
    site.secrets |= {site.admin, site.key}


def dumps(value: Any) -> bytes:
    return json.dumps(value).encode()


def nested(levels: int) -> bytes:
    return b'{"a": ' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"


UNREADABLE: dict[str, bytes] = {
    "not JSON": b'{"a": ',
    "an array": b"[]",
    "a text": b'"x"',
    "a number": b"5",
    "null": b"null",
    "65 levels": nested(65),
    "100,000 levels": nested(100_000),
    "invalid UTF-8": b'{"a": "\xff\xfe"}',
    "a lone surrogate": b'{"a": "\\ud800"}',
    "NaN": b'{"a": NaN}',
    "Infinity": b'{"a": -Infinity}',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "two values": b"{}{}",
    "a NUL": b'{"a": 1}\x00',
}
# These rows read no body: whatever comes is ignored.
BODILESS = {f"{AUTHS}/signout", "/api/v1/models/model/toggle", "/api/v1/groups/id/{id}/users"}


def post_rows(site: Site) -> list[tuple[str, list[str]]]:
    """Return path template and known field names of every POST row, from the API description."""
    document = site.daemon.call("GET", "/openapi.json")[1]
    schemas = document["components"]["schemas"]
    rows = []
    for path, operations in document["paths"].items():
        if "post" in operations:
            schema = operations["post"]["requestBody"]["content"]["application/json"]["schema"]
            known = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
            rows.append((path, list(known.get("properties", {}))))
    return rows


def filled(site: Site, template: str) -> str:
    """Return a path to something that exists."""
    return template.replace("{id}", site.group if "/groups/" in template else site.admin_id)


def test_there_are_rows(site: Site) -> None:
    rows = [path for path, _ in post_rows(site)]
    assert len(rows) > 25
    assert set(rows) >= BODILESS | set(CHATS)


@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in UNREADABLE.items()])
def test_every_post_refuses_what_it_cannot_read(site: Site, body: bytes) -> None:
    for path, _ in post_rows(site):
        if path in BODILESS:
            continue
        reply = site.send("POST", filled(site, path), body)
        assert 400 <= reply.status < 500, (path, reply)
        assert reply.status in {400, 422}, (path, reply)


def test_every_post_answers_no_body_and_an_empty_object(site: Site) -> None:
    for path, _ in post_rows(site):
        if path == f"{AUTHS}/signout":
            continue
        site.send("POST", filled(site, path))
        site.send("POST", filled(site, path), b"{}")
    for path in CHATS:
        assert site.send("POST", path).status == 400
        refused = site.send("POST", path, b"{}")
        assert (refused.status, refused.json["error"]["param"]) == (400, "model")


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "x", "gzip, identity"])
def test_every_post_refuses_a_compressed_body(site: Site, coding: str) -> None:
    for path, _ in post_rows(site):
        if path not in BODILESS:
            reply = site.send("POST", filled(site, path), b"{}", {"Content-Encoding": coding})
            assert reply.status == 415, (path, reply)


def test_every_post_refuses_a_body_over_its_limit(site: Site) -> None:
    for path, _ in post_rows(site):
        if path in BODILESS:
            continue
        limit = BODY_LIMIT if path in CHATS else SMALL_LIMIT
        reply = site.send("POST", filled(site, path), b'{"a": "' + b"a" * limit + b'"}')
        assert reply.status == 413, (path, reply)
        pieces = [b'{"a": "', *[b"a" * 65536] * (limit // 65536), b'"}']
        reply = site.send("POST", filled(site, path), pieces)
        assert reply.status == 413, (path, reply)


WRONG: list[Any] = [
    None, True, 0, -1, 2**63 - 1, 2**63, 2**64, 10**30, 1.5, 1e308, "", "x", "\x00", "\r\nX: y", "é\u2028🙂",
    [], [1], ["x"], [None], [[]], [{}], {}, {"a": 1}, {"a": []}, {"type": []}, "a" * 70_000,
]  # fmt: skip


def test_every_known_field_may_have_any_type(site: Site) -> None:
    for path, names in post_rows(site):
        if not names:
            continue
        for value in WRONG:
            site.send("POST", filled(site, path), dumps(dict.fromkeys(names, value)))
        for name in names:
            for value in ([], {}, 5, 2**63, "\x00", None):
                complete = {**dict.fromkeys(names, "x"), name: value}
                site.send("POST", filled(site, path), dumps(complete))
    assert site.is_well()


def test_settings_and_permissions_may_have_any_type(site: Site) -> None:
    for path in (f"{AUTHS}/admin/config", "/api/v1/users/default/permissions"):
        before = site.send("GET", path).json
        try:
            for name in before:
                for value in WRONG:
                    site.send("POST", path, dumps({name: value}))
        finally:
            # An empty address stands for none.
            kept = {name: "" if value is None else value for name, value in before.items()}
            assert site.send("POST", path, dumps(kept)).status == 200
    assert site.send("POST", f"{AUTHS}/admin/config", dumps({"ENABLE_API_KEYS": []})).status in {400, 422}


CHAT_FIELDS = (
    "messages", "model", "stream", "stream_options", "tools", "tool_choice", "response_format", "temperature",
    "top_p", "top_k", "n", "stop", "max_tokens", "max_completion_tokens", "presence_penalty", "logit_bias",
    "logprobs", "top_logprobs", "seed", "user", "metadata", "reasoning_effort", "parallel_tool_calls",
    "functions", "function_call", "modalities", "audio", "prediction", "store", "service_tier", "options",
    "think", "thinking", "format", "keep_alive", "files", "params", "features", "variables", "chat_id", "id",
    "session_id", "tool_ids", "filter_ids", "background_tasks", "model_item", "tool_servers", "event",
)  # fmt: skip
MESSAGE_FIELDS = (
    "role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "audio", "images",
    "thinking", "thinking_blocks", "reasoning_content", "cache_control",
)  # fmt: skip
PART_FIELDS = ("type", "text", "image_url", "input_audio", "file", "refusal", "cache_control", "source")
MODELS = ("o.m", "a.m", "l.m")


def chat(model_id: str, **fields: Any) -> dict[str, Any]:
    return {"model": model_id, "messages": [{"role": "user", "content": "hi"}], **fields}


@pytest.mark.parametrize("model", MODELS)
def test_every_chat_field_may_have_any_type(site: Site, model: str) -> None:
    for name in CHAT_FIELDS:
        for value in WRONG:
            site.send("POST", CHATS[0], dumps(chat(model, **{name: value})), token=site.key)
    assert site.send("POST", CHATS[0], dumps(chat(model))).status == 200


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
def test_every_field_of_a_message_may_have_any_type(site: Site, model: str, role: str) -> None:
    for value in WRONG:
        for name in MESSAGE_FIELDS:
            message = {"role": role, "content": "hi", "tool_call_id": "c", name: value}
            site.send("POST", CHATS[0], dumps(chat(model, messages=[message])))
        for name in PART_FIELDS:
            for kind in ("text", "image_url", "file"):
                part = {"type": kind, "text": "x", name: value}
                message = {"role": role, "content": [part], "tool_call_id": "c"}
                site.send("POST", CHATS[0], dumps(chat(model, messages=[message])))
        tool = {"type": "function", "function": value}
        named = {"type": "function", "function": {"name": value, "parameters": value, "arguments": value}}
        called = [{"role": role, "content": "x", "tool_calls": [tool, named, value]}]
        for tools in ([tool], [named], [value]):
            site.send("POST", CHATS[0], dumps(chat(model, messages=called, tools=tools)))


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "model"),
        ({"model": 5, "messages": []}, "model"),
        ({"model": "o.m"}, "messages"),
        ({"model": "o.m", "messages": "x"}, "messages"),
        ({"model": "o.m", "messages": []}, "messages"),
        ({"model": "o.m", "messages": [5]}, "messages[0]"),
        ({"model": "o.m", "messages": [{"role": "king", "content": ""}]}, "messages[0].role"),
        ({"model": "o.m", "messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        (chat("o.m", stream="yes"), "stream"),
        (chat("o.m", files={}), "files"),
        (chat("o.m", files=[{"id": "x"}]), "files[0]"),
        (chat("o.m", params=[]), "params"),
    ],
)
def test_a_bad_chat_field_is_named(site: Site, body: Any, param: str) -> None:
    for path in CHATS:
        reply = site.send("POST", path, dumps(body))
        assert (reply.status, reply.json["error"]["param"]) == (400, param)
        assert param in reply.json["error"]["message"]


@pytest.mark.parametrize(
    "model", ["no such model", "o", "o.m ", "x" * 100_000, "\x00", "../o.m", "é", "sk-" + "9" * 64]
)
def test_an_unknown_model_is_not_found(site: Site, model: str) -> None:
    site.secrets.add("sk-" + "9" * 64)
    reply = site.send("POST", CHATS[0], dumps(chat(model)))
    assert (reply.status, reply.json["error"]["code"]) == (404, "model_not_found")
    assert len(reply.body) < 4096


def test_a_warning_about_files_stays_a_short_line(site: Site) -> None:
    files = [{"type": "file\r\nX-Evil: 1", "id": f"é\n{'x' * 5000}{number}"} for number in range(50)]
    reply = site.send("POST", CHATS[0], dumps(chat("o.m", files=files)))
    assert reply.status == 200
    assert "x-evil" not in reply.headers
    assert 0 < len(reply.headers["x-gateway-warning"]) <= 2048
    assert reply.headers["x-gateway-warning"].isascii()


PATHS = {
    "/api/v1%2fmodels": 404,
    "/api/v1/users/%2e%2e/auths/": 404,
    "/api/v1/users/../auths/": 404,
    "/api//models": 404,
    "/api/models%5c": 404,
    "/api/models/%00": 404,
    "/api/v1/users/a%00b": 404,
    "/api/v1/users/a%2Fb": 404,
    "/api/v1/users/%ff%fe": 404,
    "/api/v1/users/%ED%A0%80": 404,
    "/api/v1/users/%C3%A9%F0%9F%99%82": 404,
    "/api/v1/users/%": 404,
    "/api/v1/users/%zz": 404,
    "/api/v1/users/%0d%0aX-Evil:%201": 404,
    "/api/v1/users/" + "a" * 8000: 404,
    "/api/v1/users/%E2%80%AE": 404,
    "/api/v1/groups/id/%F0%9F%99%82": 404,
    "/v1/models/a%2Fb": 404,
    "/v1/models/" + "%2F" * 1000: 404,
    "/v1/models/%FF": 404,
    "/nothing": 404,
    "/api/v1/users/{id}": 404,
}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path[:40])
def test_odd_paths_lead_nowhere(site: Site, path: str) -> None:
    for method in ("GET", "DELETE", "POST"):
        (reply, *_) = site.raw(
            f"{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n".encode(),
            f"Authorization: Bearer {site.admin}\r\nContent-Length: 0\r\n\r\n".encode(),
        )
        assert reply.status in {400, 404, 405}, reply
        assert method != "GET" or reply.status == PATHS[path]
        assert "x-evil" not in reply.headers


QUERIES = (
    "",
    "%00",
    "%ff",
    "%ED%A0%80",
    "%27%22%25_",
    "%F0%9F%99%82",
    "-1",
    "99999999999999999999",
    "1e3",
    "x" * 5000,
)


def test_query_parameters_may_hold_anything(site: Site) -> None:
    document = site.daemon.call("GET", "/openapi.json")[1]
    for path, operations in document["paths"].items():
        if "get" not in operations or path.endswith("/signout"):
            continue
        for value in QUERIES:
            names = ("query", "order_by", "direction", "page", "id", "refresh", "limit", "skip")
            for name in names:
                site.send("GET", f"{filled(site, path)}?{name}={value}")
    site.send("GET", "/api/v1/users/?page=1&page=x&&=&%00=1&query=" + "a" * 9000)


def test_every_path_answers_every_method(site: Site) -> None:
    document = site.daemon.call("GET", "/openapi.json")[1]
    for path, operations in document["paths"].items():
        target = filled(site, path)
        for method in ("HEAD", "OPTIONS", "PUT", "PATCH", "TRACE", "PROPFIND"):
            reply = site.send(method, target, token="" if path.endswith("/signout") else None)
            if method == "HEAD" and "get" in operations:
                assert reply.status != 405, path
            elif method != "HEAD":
                assert reply.status == 405, (method, path, reply)
                assert reply.headers.get("allow"), (method, path, reply)
    assert site.send("OPTIONS", "/nothing").status == 404


HEAD = b"GET /api/models HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
POST = b"POST /api/chat/completions HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
CANARY = b"canary-in-a-header"

MALFORMED: dict[str, bytes] = {
    "NUL in a header": HEAD + b"X: a\x00b\r\n\r\n",
    "NUL in the credential": HEAD + b"Authorization: Bearer \x00" + CANARY + b"\r\n\r\n",
    "control character in the credential": HEAD + b"Authorization: Bearer \x01" + CANARY + b"\r\n\r\n",
    "a bare CR": HEAD + b"X: a\rb: c\r\n\r\n",
    "a folded header": HEAD + b"X: a\r\n  " + CANARY + b"\r\n\r\n",
    "a header without a name": HEAD + b": a\r\n\r\n",
    "a header without a colon": HEAD + CANARY + b"\r\n\r\n",
    "a space before the colon": HEAD + b"Host : a\r\n\r\n",
    "20 kB in one header": HEAD + b"X: " + b"a" * 20_000 + b"\r\n\r\n",
    "20 kB of credential": HEAD + b"Authorization: Bearer " + CANARY + b"a" * 20_000 + b"\r\n\r\n",
    "20 kB of path": b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    "10,000 headers": HEAD + b"".join(b"X%d: a\r\n" % number for number in range(10_000)) + b"\r\n",
    "two lengths": POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
    "a negative length": POST + b"Content-Length: -1\r\n\r\n",
    "a length with a sign": POST + b"Content-Length: +2\r\n\r\n{}",
    "a length in words": POST + b"Content-Length: two\r\n\r\n{}",
    "a huge length": POST + b"Content-Length: 99999999999999999999999\r\n\r\n{}",
    "length and chunks": POST
    + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "an unknown transfer coding": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "chunked twice": POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "no version": b"GET /api/models\r\n\r\n",
    "a future version": b"GET /api/models HTTP/9.9\r\nHost: a\r\n\r\n",
    "not HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + CANARY + b"\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "an odd method": b"G@T /api/models HTTP/1.1\r\nHost: a\r\n\r\n",
    "a target without a slash": b"GET api/models HTTP/1.1\r\nHost: a\r\n\r\n",
    "UTF-8 in the target": "GET /é HTTP/1.1\r\nHost: a\r\n\r\n".encode(),
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_requests_are_refused(site: Site, name: str) -> None:
    replies = site.raw(MALFORMED[name])
    assert len(replies) == 1, replies
    assert 400 <= replies[0].status < 500, replies
    assert CANARY not in replies[0].body
    assert site.is_well()


ODD: dict[str, tuple[bytes, int]] = {
    "two hosts": (HEAD + b"Host: b\r\n\r\n", 400),
    "no host": (b"GET /api/models HTTP/1.1\r\nConnection: close\r\n\r\n", 400),
    "an absolute target": (b"GET http://b/api/models HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 404),
    "a proxy's request": (b"CONNECT other:443 HTTP/1.1\r\nHost: other:443\r\nConnection: close\r\n\r\n", 404),
    "an asterisk": (b"OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 404),
    "an unknown expectation": (HEAD + b"Expect: miracles\r\n\r\n", 401),
    "an upgrade": (HEAD + b"Upgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n", 401),
    "two credentials": (HEAD + b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n", 401),
    "latin-1 in the credential": (HEAD + b"Authorization: Bearer \xe9\xff" + CANARY + b"\r\n\r\n", 401),
    "a broken cookie": (HEAD + b'Cookie: token="\\x; =; ;;token=\xff' + CANARY + b"\r\n\r\n", 401),
    "a nameless scheme": (HEAD + b"Authorization: " + CANARY + b"\r\n\r\n", 401),
    "a foreign request id": (HEAD + b"X-Request-Id: a b\x80" + CANARY + b"\r\n\r\n", 401),
    "HTTP/1.0": (b"GET /api/models HTTP/1.0\r\n\r\n", 401),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_odd_requests_get_their_answer(site: Site, name: str) -> None:
    data, status = ODD[name]
    replies = site.raw(data)
    assert [reply.status for reply in replies] == [status], replies
    assert CANARY.decode() not in str(replies)


def authorised(site: Site, head: bytes) -> bytes:
    return head + f"Authorization: Bearer {site.admin}\r\n".encode()


BROKEN_BODIES: dict[str, bytes] = {
    "a bad chunk size": b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "a negative chunk size": b"Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
    "a chunk longer than said": b"Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("name", BROKEN_BODIES)
def test_broken_bodies_are_refused(site: Site, name: str) -> None:
    for path in (b"/api/chat/completions", b"/api/v1/auths/admin/config"):
        start = POST.replace(b"/api/chat/completions", path)
        head, _, body = BROKEN_BODIES[name].partition(b"\r\n\r\n")
        replies = site.raw(authorised(site, start), head, b"\r\n\r\n", body)
        assert [reply.status for reply in replies] == [400], replies


@pytest.mark.parametrize(
    "framing", [b"Content-Length: 100\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n64\r\n{"]
)
def test_a_client_that_leaves_in_the_middle_of_its_body(site: Site, framing: bytes) -> None:
    for path in (b"/api/chat/completions", b"/api/v1/auths/admin/config", b"/api/v1/auths/signin"):
        start = POST.replace(b"/api/chat/completions", path)
        with connected(site.daemon.base_url) as channel:
            channel.sendall(authorised(site, start) + framing)
            # Half the connection may stay open; either way nothing comes of it.
            channel.shutdown(socket.SHUT_WR)
            for reply in parse_replies(read_to_end(channel)):
                assert 400 <= reply.status < 500
                site.note(reply, "half a body")
    assert site.is_well()


def test_garbage_after_a_good_request_is_refused(site: Site) -> None:
    with connected(site.daemon.base_url) as channel:
        channel.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
        assert channel.recv(65536).startswith(b"HTTP/1.1 200 ")
        channel.sendall(b"\x00\x01garbage " + CANARY + b"\r\n\r\n")
        (refused,) = parse_replies(read_to_end(channel))
    site.note(refused, "garbage")
    assert refused.status == 400
    assert CANARY not in refused.body


def test_pipelined_requests_are_answered_in_order(site: Site) -> None:
    one = b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"
    other = b"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n"
    last = one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    assert [reply.status for reply in site.raw(one, other, one, other, last)] == [200, 404, 200, 404, 200]


def signed(header: Mapping[str, Any], claims: Mapping[str, Any], secret: bytes = b"s" * 32) -> str:
    """Return a token signed with HMAC-SHA256, or with whatever else the header says."""
    head, body = (base64.urlsafe_b64encode(dumps(part)).rstrip(b"=") for part in (header, claims))
    mark = hmac.new(secret, head + b"." + body, hashlib.sha256).digest()
    return b".".join((head, body, base64.urlsafe_b64encode(mark).rstrip(b"="))).decode()


def forgeries(site: Site) -> dict[str, str]:
    now = int(time.time())
    claims = {"id": site.admin_id, "sub": site.admin_id, "ver": 0, "jti": "j", "iat": now, "exp": now + 999}
    plain = {"alg": "HS256", "typ": "JWT"}
    head, body, mark = site.admin.split(".")
    swapped = "A" if mark[0] != "A" else "B"
    return {
        "foreign": signed(plain, claims),
        "none": signed({"alg": "none", "typ": "JWT"}, claims).rpartition(".")[0] + ".",
        "None": signed({"alg": "nOnE", "typ": "JWT"}, claims),
        "crit": signed({**plain, "crit": ["exp"]}, claims),
        "kid": signed({**plain, "kid": "../../dev/null"}, claims, b""),
        "RS256": signed({"alg": "RS256", "typ": "JWT"}, claims),
        "changed": f"{head}.{body}.{swapped}{mark[1:]}",
        "empty secret": signed(plain, claims, b""),
        "no claims": f"{head}..{mark}",
        "claims of another type": signed(plain, ["x"]),  # type: ignore[arg-type]
        "oversized": f"{head}.{body * 40}.{mark}",
        "dots": "." * 3000,
        "unicode": "eyJ\u00e9.\u00e9.\u00e9",
        "short key": "sk-",
        "other key": "sk-" + "0" * 64,
        "long key": "sk-" + "a" * 8000,
        "half a key": site.key[:-4],
        "key in capitals": site.key.upper(),
    }


NAMES = (
    "foreign", "none", "None", "crit", "kid", "RS256", "changed", "empty secret", "no claims",
    "claims of another type", "oversized", "dots", "unicode", "short key", "other key", "long key",
    "half a key", "key in capitals",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_forged_credentials_open_nothing(site: Site, name: str) -> None:
    token = forgeries(site)[name]
    if len(token) > 20:
        site.secrets.add(token)
    assert tuple(forgeries(site)) == NAMES
    for header in ("Authorization", "x-api-key", "Cookie"):
        form = {"Authorization": "Bearer {}", "x-api-key": "{}", "Cookie": "token={}"}[header]
        value = form.format(token).encode().decode("latin-1")
        reply = site.send("GET", "/api/models", None, {header: value}, token="")
        assert reply.status == 401, reply
        assert "www-authenticate" in reply.headers
        assert token not in reply.body.decode()


def test_revoked_and_expired_credentials_open_nothing(site: Site) -> None:
    form = {"name": "N", "email": "gone@example.org", "password": PASSWORD, "role": "admin"}
    made = site.send("POST", f"{AUTHS}/add", dumps(form)).json
    assert site.send("GET", "/api/models", token=made["token"]).status == 200
    assert site.send("POST", f"{AUTHS}/signout", b"{}", token=made["token"]).status == 200
    assert site.send("GET", "/api/models", token=made["token"]).status == 401
    soon = {"name": "soon", "expires_at": int(time.time()) + 2}
    key = site.send("POST", f"{AUTHS}/api_keys", dumps(soon)).json["api_key"]
    site.secrets |= {key, made["token"]}
    assert site.send("GET", "/api/models", token=key).status == 200
    while time.time() < soon["expires_at"]:
        time.sleep(0.05)
    reply = site.send("GET", "/api/models", token=key)
    assert (reply.status, "expired" in reply.json["detail"]) == (401, True)


def test_idle_connections_do_not_hurt(site: Site) -> None:
    with contextlib.ExitStack() as stack:
        for number in range(200):
            channel = stack.enter_context(connected(site.daemon.base_url))
            # Half of them say nothing at all, the others half a request.
            if number % 2:
                channel.sendall(b"GET /api/models HTTP/1.1\r\nHost: a\r\nAuthor")
        for _ in range(20):
            assert site.is_well()
        assert site.send("POST", CHATS[0], dumps(chat("o.m"))).status == 200


def test_afterwards_the_daemon_lives(site: Site) -> None:
    assert site.is_well()
    assert site.send("GET", "/nothing").status == 404


def test_every_refusal_has_its_line(site: Site) -> None:
    assert site.send("GET", "/nothing").status == 404
    wait_for_line(site, list(site.refused)[-1])
    lines = [line for line in "".join(site.daemon.log).splitlines() if "request_id=" in line]
    counts: dict[str, int] = dict.fromkeys(site.refused, 0)
    for line in lines:
        name = line.partition("request_id=")[2].split(" ")[0]
        counts[name] = counts.get(name, 0) + 1
    assert {
        site.refused[name]: count for name, count in counts.items() if name in site.refused and count != 1
    } == {}


def wait_for_line(site: Site, words: str) -> None:
    deadline = time.monotonic() + 10
    while words not in "".join(site.daemon.log) and time.monotonic() < deadline:
        time.sleep(0.02)


def test_the_log_has_no_traceback_and_no_secret(site: Site) -> None:
    log = "".join(site.daemon.log)
    assert "Traceback" not in log
    assert " error " not in log
    assert [secret for secret in (*site.secrets, CANARY.decode()) if secret in log] == []
    assert max(map(len, log.splitlines())) < 12_000

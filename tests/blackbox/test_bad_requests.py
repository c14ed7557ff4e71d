"""Odd requests, paths and credentials against the real daemon: always a clear refusal, never a 500.

Each refusal is remembered; at the end its line is looked for in what the daemon printed (`Site.assert_told`).
"""

import base64
import contextlib
import hashlib
import hmac
import socket
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.fakes.daemons.bad_input_site import (
    AUTHS,
    CANARY,
    CHATS,
    PASSWORD,
    RUNTIME,
    Site,
    chat,
    dumps,
    opened_site,
)
from tests.fakes.http.raw_http import connected, parse_replies, read_to_end


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened_site(tmp_path_factory.mktemp("s")) as opened:
        yield opened


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
    "/api/v1/chats/%00": 404,
    "/api/v1/chats/%ED%A0%80": 404,
    "/api/v1/chats/" + "a" * 8000: 404,
    "/api/v1/chats/share/%00": 404,
    "/api/v1/functions/id/%00": 404,
    "/api/v1/tools/id/..%2f..": 404,
}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path[:40])
def test_odd_paths_lead_nowhere(site: Site, path: str) -> None:
    for method in ("GET", "DELETE", "POST"):
        (reply, *_) = site.raw(
            f"{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n".encode(),
            f"Authorization: Bearer {site.admin}\r\nContent-Length: 0\r\n\r\n".encode(),
        )
        assert reply.status in {400, 404, 405, 422}, reply
        assert method != "GET" or reply.status == PATHS[path]
        assert "x-evil" not in reply.headers


ALIASES = ("/openai/", "/ollama/v1/", "/v1/")
"""Where rows stand a second time."""

ENDLESS = {"/api/v1/events"}
"""Streams that end when the client leaves."""

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
    document = site.described()
    for path, operations in document["paths"].items():
        if (
            "get" not in operations
            or path in ENDLESS
            or path.endswith("/signout")
            or path.startswith(ALIASES)
        ):
            continue
        for value in QUERIES:
            names = ("query", "order_by", "direction", "page", "id", "refresh", "limit", "skip")
            for name in names:
                site.send("GET", f"{site.filled(path)}?{name}={value}")
    site.send("GET", "/api/v1/users/?page=1&page=x&&=&%00=1&query=" + "a" * 9000)


def test_every_path_answers_every_method(site: Site) -> None:
    document = site.described()
    for path, operations in document["paths"].items():
        if path == f"{RUNTIME}{{path}}":
            # Whatever the method, the runtime answers.
            continue
        target = site.filled(path)
        for method in ("HEAD", "OPTIONS", "PUT", "PATCH", "TRACE", "PROPFIND"):
            reply = site.send(method, target, token="" if path.endswith("/signout") else None)
            if method.lower() in operations or (method == "HEAD" and "get" in operations):
                assert reply.status != 405, (method, path)
            elif method != "HEAD":
                assert reply.status == 405, (method, path, reply)
                assert reply.headers.get("allow"), (method, path, reply)
    assert site.send("OPTIONS", "/nothing").status == 404


HEAD = b"GET /api/models HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
POST = b"POST /api/chat/completions HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"

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
    "a host with a blank": (b"GET /api/models HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n", 400),
    "a host with markup": (b'GET /livez HTTP/1.1\r\nHost: x"y<z>\r\nConnection: close\r\n\r\n', 400),
    "a host with a path": (b"GET /livez HTTP/1.1\r\nHost: a/b\r\nConnection: close\r\n\r\n", 400),
    "a host with an underscore": (b"GET /livez HTTP/1.1\r\nHost: a_b:80\r\nConnection: close\r\n\r\n", 200),
    "an IPv6 host": (b"GET /livez HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close\r\n\r\n", 200),
    "an empty host": (b"GET /livez HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n", 200),
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

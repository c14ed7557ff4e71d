"""The fast path of a running daemon: the same requests get the same replies, usage and metrics without it."""

import contextlib
import json
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.http.raw_http import Reply, connected, exchange, parse_replies, read_to_end
from tests.fakes.providers.background_upstream import Provider, background_upstream
from tests.fakes.providers.upstream import (
    CUT,
    SILENCE,
    json_reply,
    openai_completion,
    openai_stream,
)
from tests.fakes.providers.upstream import Reply as Scripted

T = TypeVar("T")

PATH: Final = "/v1/chat/completions"
FAST_METRIC: Final = re.compile(r"^gatewayd_http_fast_requests_total (\d+)", re.MULTILINE)
MADE_ID: Final = re.compile("[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}")
CHANGING: Final = {"x-request-id", "request-id", "x-process-time", "date"}
"""Headers that differ between two replies to the same request."""

PROVIDER: Final = """
[[providers]]
name = "o"
base_url = "{url}/v1"
prefix = "o."
key = "sk-upstream"
first_byte_timeout = 1
stream_idle_timeout = 1
[[providers]]
name = "a"
kind = "anthropic"
base_url = "{url}"
prefix = "a."
key = "sk-upstream"
"""
MODELS: Final = ["a.m", "o.m"]
"""The models of the providers of the messages dialect and of the OpenAI dialect."""


@dataclass
class Site:
    """A daemon, the provider that it alone asks, and its first administrator's key."""

    daemon: Daemon
    provider: Provider
    key: str

    def fast_count(self) -> int:
        """Return how many requests the fast path has answered."""
        found = FAST_METRIC.search(self.daemon.metrics())
        assert found is not None
        return int(found[1])

    def usage(self) -> list[dict[str, Any]]:
        """Return the usage report once its last calls are written."""
        time.sleep(1.2)
        done = self.daemon.run_ctl("-o", "json", "usage", "report", "--by", "model")
        assert done.returncode == 0, done.stderr
        rows: list[dict[str, Any]] = json.loads(done.stdout)
        return [{name: value for name, value in row.items() if "seconds" not in name} for row in rows]

    def ask(self, body: bytes, headers: Mapping[str, str] | None = None, path: str = PATH) -> Reply:
        """Send a chat request on a connection of its own, and return the reply."""
        given = {name: value.replace("KEY", self.key) for name, value in (headers or {}).items()}
        with connected(self.daemon.base_url) as channel:
            # Only a connection whose task waits is on the fast path.
            time.sleep(0.02)
            channel.sendall(chat(self.key, body, given, path))
            return read_reply(channel)


def chat(key: str, body: bytes, headers: Mapping[str, str] | None = None, path: str = PATH) -> bytes:
    """Return the bytes of a chat request; a header with the value "" is left out."""
    fields = {
        "Host": "gateway.example.org",
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        **(headers or {}),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value)
    return f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


def read_reply(channel: socket.socket) -> Reply:
    """Return one reply; the connection stays open."""
    data = b""
    while True:
        part = channel.recv(65536)
        assert part, f"the gateway closed after {data!r}"
        data += part
        head, found, body = data.partition(b"\r\n\r\n")
        if not found:
            continue
        length = re.search(rb"content-length: (\d+)", head.lower())
        if length is None and body.endswith(b"0\r\n\r\n"):
            return replace(next(iter(parse_replies(data))), body=unchunked(body))
        if length is not None and len(body) >= int(length[1]):
            return next(iter(parse_replies(data)))


def unchunked(body: bytes) -> bytes:
    """Return what the chunks of a body hold; where they end may differ."""
    found = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        found += body[: int(size, 16)]
        body = body[int(size, 16) + 2 :]
    return found


def embedding(key: str, **fields: Any) -> bytes:
    """Return the bytes of a request for embeddings."""
    body = json.dumps({"model": "o.m", "input": "hi", **fields}).encode()
    return chat(key, body, path="/v1/embeddings")


def message(text: object = "hi", **fields: Any) -> bytes:
    return json.dumps({"model": "o.m", "messages": [{"role": "user", "content": text}], **fields}).encode()


@contextlib.contextmanager
def opened(folder: Path, fast: str) -> Iterator[Site]:
    with background_upstream(("m",)) as provider:
        (folder / "gatewayd.toml").write_text(PROVIDER.format(url=provider.url))
        with running_daemon(folder / "state", "-f", str(folder / "gatewayd.toml"), FAST_PATH=fast) as daemon:
            made = daemon.run_ctl("setup", "--email", "root@example.org", "--name", "Root", "-o", "name")
            assert made.returncode == 0, made.stderr
            key = made.stdout.split()[-1]
            site = Site(daemon, provider, key)
            # The first request asks the database for the key, and opens a connection to the provider.
            assert site.ask(message()).status == 200
            yield site


@pytest.fixture(scope="module")
def fast(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened(tmp_path_factory.mktemp("fast"), "true") as site:
        yield site


@pytest.fixture(scope="module")
def general(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened(tmp_path_factory.mktemp("general"), "false") as site:
        yield site


def on_both(fast: Site, general: Site, work: Callable[[Site], T]) -> tuple[T, T]:
    """Return what the same work finds at the two sites, which do it at the same time."""
    with ThreadPoolExecutor(2) as pool:
        of_fast, of_general = pool.map(work, (fast, general))
    return of_fast, of_general


def shown(reply: Reply) -> tuple[int, dict[str, str], str]:
    """Return what two replies to the same request have in common."""
    headers = {name: value for name, value in reply.headers.items() if name not in CHANGING}
    return (
        reply.status,
        headers,
        reply.body.decode(errors="replace").replace(reply.headers.get("x-request-id", "-"), "ID"),
    )


TOOL_CALL: Final = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ANSWERED: Final[dict[str, bytes]] = {
    "plain": message(),
    "unicode": message("übergrößen 🎉 \u0000"),
    "system with placeholders": message(messages=[{"role": "system", "content": "I am {{USER_NAME}}"}]),
    "history": message(messages=[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]),
    "sampling": message(temperature=0.5, max_tokens=9, stop=["x"], unknown_field={"a": [1]}),
    "tools": message(tools=[{"type": "function", "function": {"name": "f", "parameters": {}}}]),
    "unneeded stream options": message(stream=False, stream_options={"include_usage": True}),
    "null stream": message(stream=None),
    "streamed": message(stream=True),
    "streamed with usage": message(stream=True, stream_options={"include_usage": True}),
    "streamed without usage": message(stream=True, stream_options={"include_usage": False}),
    "streamed with placeholders": message(
        stream=True, messages=[{"role": "system", "content": "I am {{USER_NAME}}"}]
    ),
    "many short messages": message(messages=[{"role": "user", "content": "x"}] * 60),
    "60 KB": message("x" * 60_000),
    "parts": message([{"type": "text", "text": "hi"}]),
    "parts with placeholders": message(
        messages=[{"role": "system", "content": [{"type": "text", "text": "I am {{USER_NAME}}"}]}]
    ),
}
"""Requests that the fast path answers."""

REFUSED: Final[dict[str, bytes]] = {
    "no JSON": b"{",
    "empty": b"",
    "no object": b"[]",
    "deep": b'{"model":' + b"[" * 3000 + b"]" * 3000 + b"}",
    "twice": b'{"model":"x","model":"o.m","messages":[{"role":"user","content":"hi"}]}',
    "upper case": message(Model="x"),
    "no model": json.dumps({"messages": [{"role": "user", "content": "hi"}]}).encode(),
    "unknown model": message(model="nobody"),
    "no messages": message(messages=[]),
    "unknown role": message(messages=[{"role": "god", "content": "hi"}]),
    "lone surrogate": rb'{"model":"o.m","messages":[{"role":"user","content":"\ud800"}]}',
    "huge integer": message(seed=10**30),
    "stream of another type": message(stream="yes"),
    "long history": message(messages=[{"role": "user", "content": "x"}] * 65),
}
"""Requests that the handler answers."""

HEADERS: Final[dict[str, dict[str, str]]] = {
    "own id": {"X-Request-Id": "mine-1"},
    "bad id": {"X-Request-Id": "no id!"},
    "no type": {"Content-Type": ""},
    "other type": {"Content-Type": "text/plain"},
    "type with charset": {"Content-Type": "application/json; charset=utf-8"},
    "key header": {"Authorization": "", "x-api-key": "KEY"},
    "unknown key": {"Authorization": "Bearer sk-unknown"},
    "no key": {"Authorization": ""},
    "basic": {"Authorization": "Basic a"},
    "long key": {"Authorization": "Bearer " + "k" * 5000},
    "foreign page": {"Origin": "https://evil.example.org"},
    "fetched by a page": {"Sec-Fetch-Site": "cross-site"},
    "own page": {"Sec-Fetch-Site": "same-origin"},
    "no host": {"Host": ""},
    "bad host": {"Host": "a b"},
    "compressed": {"Content-Encoding": "gzip"},
    "forwarded": {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"},
    "messages client": {"anthropic-version": "2023-06-01"},
}

FAILURES: Final[dict[str, Scripted]] = {
    "400": json_reply({"error": {"message": "bad", "type": "invalid_request_error", "param": "x"}}, 400),
    "401": json_reply({"error": {"message": "bad key"}}, 401),
    "429": json_reply({"error": {"message": "slow", "code": "rate_limit_exceeded"}}, 429, Retry_After="7"),
    "500": json_reply({"error": {"message": "broken"}}, 500),
    "503": Scripted(503, content_type="text/plain", steps=[b"busy"]),
    "error with status 200": json_reply({"error": {"message": "sorry"}}),
    "no choices": json_reply({"id": "1"}),
    "a list": json_reply([1]),
    "no JSON": Scripted(content_type="application/json", steps=[b"<html>"]),
    "a page": Scripted(content_type="text/html", steps=[b"<html>"]),
    "deep": Scripted(content_type="application/json", steps=[b"[" * 3000 + b"]" * 3000]),
    "cut before the head": Scripted(before=CUT),
    "cut in the body": Scripted(content_type="application/json", steps=[b'{"choices"', CUT]),
    "silent before the head": Scripted(before=SILENCE),
    "silent in the body": Scripted(content_type="application/json", steps=[b'{"choices"', SILENCE]),
    "compressed": json_reply(openai_completion("x"), Content_Encoding="gzip"),
    "redirect": Scripted(302, {"Location": "http://127.0.0.1/"}),
    "empty": Scripted(content_type="application/json", steps=[]),
    "events": Scripted(steps=openai_stream(["a"])),
}

ODD: Final[dict[str, Scripted]] = {
    "in pieces": Scripted(
        content_type="application/json",
        steps=[bytes([byte]) for byte in json.dumps(openai_completion("x")).encode()],
    ),
    "long": json_reply(openai_completion("y" * 300_000)),
    "tool calls": json_reply(openai_completion("", tool_calls=[TOOL_CALL])),
    "reasoning": json_reply(openai_completion("x", reasoning_content="thought")),
    "thinking parts": json_reply(openai_completion("", content=[{"type": "thinking", "thinking": "t"}])),
    "limits": json_reply(openai_completion("x"), x_ratelimit_remaining_requests="9"),
    "an event": json_reply({**openai_completion("x"), "event": {"type": "status"}}),
}


def both(fast: Site, general: Site, body: bytes, headers: Mapping[str, str] | None = None) -> int:
    """Compare the replies of both sites, and return how many requests the fast path has answered."""
    before = fast.fast_count()
    replies = on_both(fast, general, lambda site: shown(site.ask(body, headers)))
    assert replies[0] == replies[1]
    return fast.fast_count() - before


@pytest.mark.parametrize("name", ANSWERED)
def test_answered_requests_have_the_same_reply(name: str, fast: Site, general: Site) -> None:
    assert both(fast, general, ANSWERED[name]) == 1


@pytest.mark.parametrize("name", REFUSED)
def test_other_requests_have_the_same_reply(name: str, fast: Site, general: Site) -> None:
    assert both(fast, general, REFUSED[name]) == (name == "twice")


@pytest.mark.parametrize("name", HEADERS)
def test_headers_lead_to_the_same_reply(name: str, fast: Site, general: Site) -> None:
    both(fast, general, message(), HEADERS[name])


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", FAILURES)
def test_a_failing_provider_is_asked_once_and_reported_alike(
    name: str, is_stream: bool, fast: Site, general: Site
) -> None:
    def fail(site: Site) -> tuple[Any, int]:
        # An idle connection to the provider, which a failure may have closed.
        site.provider.script()
        assert site.ask(message()).status == 200
        site.provider.script(FAILURES[name])
        reply = shown(site.ask(message(stream=True) if is_stream else message()))
        site.provider.release()
        return reply, sum(one.method == "POST" for one in site.provider.fake.requests)

    found = on_both(fast, general, fail)
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ODD)
def test_odd_answers_are_passed_on_alike(name: str, fast: Site, general: Site) -> None:
    def ask(site: Site) -> Any:
        site.provider.script(ODD[name])
        return shown(site.ask(message()))

    found = on_both(fast, general, ask)
    assert found[0] == found[1]


def test_a_key_that_is_revoked_opens_nothing(fast: Site) -> None:
    made = fast.daemon.run_ctl("-o", "json", "key", "create", "root@example.org", "second")
    assert made.returncode == 0, made.stderr
    key, key_id = (json.loads(made.stdout)[name] for name in ("value", "id"))
    with connected(fast.daemon.base_url) as channel:
        for status in (200, 200, 401):
            if status == 401:
                revoked = fast.daemon.run_ctl("key", "revoke", key_id, "--yes")
                assert revoked.returncode == 0, revoked.stderr
            channel.sendall(chat(key, message()))
            assert read_reply(channel).status == status


def test_a_client_that_leaves_ends_the_call(fast: Site) -> None:
    provider = fast.provider
    provider.script(Scripted(before=SILENCE))
    with connected(fast.daemon.base_url) as channel:
        time.sleep(0.02)
        channel.sendall(chat(fast.key, message()))
        provider.wait_silent()
    provider.wait_closed(5)
    provider.release()
    assert fast.ask(message()).status == 200


def test_pipelined_requests_are_answered_in_their_order(fast: Site) -> None:
    sent = [chat(fast.key, message(str(number)), {"X-Request-Id": f"r{number}"}) for number in range(20)]
    last = chat(fast.key, message(), {"X-Request-Id": "last", "Connection": "close"})
    replies = exchange(fast.daemon.base_url, b"".join([*sent, last]))
    assert [reply.headers["x-request-id"] for reply in replies] == [*[f"r{n}" for n in range(20)], "last"]


def test_both_count_the_same_calls_and_tokens(fast: Site, general: Site) -> None:
    """All tests above have sent both sites the same calls, but those that only the fast one got."""
    before = on_both(fast, general, Site.usage)

    def send(site: Site) -> None:
        with connected(site.daemon.base_url) as channel:
            for number in range(50):
                sent = chat(site.key, message(str(number), stream=number % 2 == 0))
                channel.sendall(sent if number % 5 else embedding(site.key, input=[str(number)]))
                assert read_reply(channel).status == 200

    for site in (fast, general):
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(send, [site] * 8))
    after = on_both(fast, general, Site.usage)
    names = ("requests", "prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens")
    grown = [
        {name: late[0].get(name, 0) - early[0].get(name, 0) for name in names}
        for early, late in zip(before, after, strict=True)
    ]
    assert grown[0] == grown[1]
    assert grown[0]["requests"] == 400
    assert fast.fast_count() > 350
    assert general.fast_count() == 0


MESSAGES: Final[dict[str, tuple[dict[str, Any], dict[str, str], str, bool]]] = {
    "plain": ({}, {}, "/v1/messages", True),
    "blocks": ({"messages": [{"role": "user", "content": [{"type": "text", "text": "ü🎉"}]}]}, {}, "", True),
    "key header": (
        {},
        {"Authorization": "", "x-api-key": "KEY", "anthropic-version": "2023-06-01"},
        "",
        True,
    ),
    "betas": ({"unknown": 1}, {"anthropic-beta": "effort-2025-11-24"}, "/v1/messages?beta=true", True),
    "other path": ({"system": "be kind"}, {}, "/api/message", True),
    "no messages": ({"messages": []}, {}, "", False),
    "unknown model": ({"model": "nobody"}, {}, "", False),
    "unknown key": ({}, {"x-api-key": "sk-unknown", "Authorization": ""}, "", False),
    "repeatable": ({}, {"Idempotency-Key": "NAME"}, "", False),
    "repeated": ({}, {"Idempotency-Key": "NAME"}, "", False),
    "resumable": ({}, {"X-Gateway-Stream": "resumable"}, "", False),
}
"""Requests for messages: further fields, headers, the path, and whether the way is fast."""


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("model", MODELS)
def test_messages_are_the_same(model: str, is_stream: bool, fast: Site, general: Site) -> None:
    """More of them are compared in `tests.gatewayd.http.public.completions.test_begun_chat`."""
    for site in (fast, general):
        # An idle connection to the provider.
        assert site.ask(message(model=model, max_tokens=9), path="/v1/messages").status == 200
    before = fast.fast_count()
    for name, (fields, headers, path, _) in MESSAGES.items():
        named = {key: value.replace("NAME", f"{model} {is_stream}") for key, value in headers.items()}
        body = message(**{"model": model, "max_tokens": 9, "stream": is_stream, **fields})
        if is_stream and model == "o.m":
            # In one write: the first ping comes behind what the first read has.
            for site in (fast, general):
                site.provider.script(Scripted(steps=[b"".join(openai_stream(["Hello", " from", " m"]))]))
        replies = [site.ask(body, named, path or "/v1/messages") for site in (fast, general)]
        # Each gateway makes ids of its own.
        found = [MADE_ID.sub("ID", repr(shown(reply))) for reply in replies]
        assert found[0] == found[1], name
        assert len({reply.headers["request-id"] for reply in replies}) == 2, name
    assert fast.fast_count() - before == sum(is_fast for *_, is_fast in MESSAGES.values())


@pytest.mark.parametrize(
    ("fields", "is_fast"),
    [
        ({}, True),
        ({"input": ["a", "ü🎉"], "encoding_format": "base64"}, True),
        ({"input": [[1, 2]]}, True),
        ({"input": [""]}, False),
        ({"model": "nobody"}, False),
    ],
    ids=["text", "base64", "tokens", "empty", "unknown model"],
)
def test_embeddings_are_the_same(fields: dict[str, Any], is_fast: bool, fast: Site, general: Site) -> None:
    def ask(site: Site) -> Any:
        with connected(site.daemon.base_url) as channel:
            # Only a connection whose task waits is on the fast path.
            time.sleep(0.02)
            channel.sendall(embedding(site.key, **fields))
            return shown(read_reply(channel))

    before = fast.fast_count()
    found = on_both(fast, general, ask)
    assert found[0] == found[1]
    assert fast.fast_count() - before == is_fast


def listing(key: str, headers: Mapping[str, str] | None = None, path: str = "/v1/models") -> bytes:
    """Return the bytes of a request for the list of models."""
    fields = {"Host": "gateway.example.org", "Authorization": f"Bearer {key}", **(headers or {})}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode()


def lists(site: Site, key: str, count: int = 1, headers: Mapping[str, str] | None = None) -> list[Reply]:
    """Return the replies to requests for the list of models, on one connection."""
    replies = []
    with connected(site.daemon.base_url) as channel:
        for _ in range(count):
            # Only a connection whose task waits is on the fast path.
            time.sleep(0.02)
            channel.sendall(listing(key, headers))
            replies.append(read_reply(channel))
    return replies


def make_user(site: Site, name: str) -> str:
    """Return the key of a new user."""
    email = f"{name}@example.org"
    made = site.daemon.run_ctl("user", "create", "--email", email, "--name", name, "--role", "user")
    assert made.returncode == 0, made.stderr
    made = site.daemon.run_ctl("-o", "json", "key", "create", email, "k")
    assert made.returncode == 0, made.stderr
    key: str = json.loads(made.stdout)["value"]
    return key


def ids_of(reply: Reply) -> list[str]:
    assert reply.status == 200, reply.body
    return [one["id"] for one in json.loads(reply.body)["data"]]


HEALTH: Final[dict[str, str]] = {
    "plain": "GET /health HTTP/1.1\r\nHost: a\r\n\r\n",
    "slash": "GET /health/ HTTP/1.1\r\nHost: a\r\n\r\n",
    "database": "GET /health/db HTTP/1.1\r\nHost: a\r\n\r\n",
    "query": "GET /health?a=b HTTP/1.1\r\nHost: a\r\n\r\n",
    "head alone": "HEAD /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    "other method": "DELETE /health HTTP/1.1\r\nHost: a\r\n\r\n",
    "body": "GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    "chunks": "GET /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
    "last": "GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    "old": "GET /health HTTP/1.0\r\nHost: a\r\n\r\n",
    "own id": "GET /health HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\n\r\n",
    "page": "GET /health HTTP/1.1\r\nHost: a\r\nOrigin: https://evil.example.org\r\n\r\n",
    "unknown key": "GET /health HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer sk-unknown\r\n\r\n",
    "cookie": "GET /health HTTP/1.1\r\nHost: a\r\nCookie: token=unknown\r\n\r\n",
    "no host": "GET /health HTTP/1.1\r\n\r\n",
    "bad host": "GET /health HTTP/1.1\r\nHost: a b\r\n\r\n",
    "two hosts": "GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
}
HEALTH_METRIC: Final = re.compile(r'^gatewayd_http_requests_total\{.*"/health".*\} \d+', re.MULTILINE)


def health_counts(site: Site) -> dict[str, int]:
    """Return how many health checks were counted, by their labels."""
    found = HEALTH_METRIC.findall(site.daemon.metrics())
    return {labels: int(count) for labels, _, count in (line.rpartition(" ") for line in found)}


def grown_health_counts(site: Site, before: Mapping[str, int]) -> dict[str, int]:
    """Return how many health checks more were counted, by their labels."""
    grown = {labels: count - before.get(labels, 0) for labels, count in health_counts(site).items()}
    return {labels: count for labels, count in grown.items() if count}


def health_replies(site: Site, head: str) -> list[tuple[int, dict[str, str], str]]:
    """Return what the gateway answers to a health check and to two plain ones behind it."""
    with connected(site.daemon.base_url) as channel:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for sent in (head, HEALTH["plain"], HEALTH["last"]):
                # Only a connection whose task waits is on the fast path.
                time.sleep(0.01)
                channel.sendall(sent.encode())
        return [shown(reply) for reply in parse_replies(read_to_end(channel))]


def test_health_is_reported_and_counted_alike(fast: Site, general: Site) -> None:
    def check(site: Site) -> tuple[Any, dict[str, int]]:
        before = health_counts(site)
        replies = {name: health_replies(site, head) for name, head in HEALTH.items()}
        return replies, grown_health_counts(site, before)

    # One after the other: the pauses between the requests are to stay what they are.
    found = [check(site) for site in (fast, general)]
    assert found[0] == found[1]
    assert found[0][1]


def test_health_is_answered_on_the_fast_path(fast: Site) -> None:
    """Not each time: once a second the database is asked, which takes a wait."""
    before = fast.fast_count()
    with connected(fast.daemon.base_url) as channel:
        while fast.fast_count() == before:
            for _ in range(5):
                time.sleep(0.02)
                channel.sendall(HEALTH["plain"].encode())
                reply = read_reply(channel)
                assert (reply.status, reply.body) == (200, b'{"status":true}')


@pytest.mark.parametrize(
    "headers",
    [{}, {"X-Request-Id": "mine"}, {"anthropic-version": "2023-06-01"}, {"Sec-Fetch-Site": "same-origin"}],
    ids=["plain", "own id", "messages client", "own page"],
)
def test_lists_of_models_are_the_same(headers: dict[str, str], fast: Site, general: Site) -> None:
    before = fast.fast_count()
    found = on_both(fast, general, lambda site: [shown(reply) for reply in lists(site, site.key, 3, headers)])
    assert found[0] == found[1]
    assert found[0] == [found[0][0]] * 3
    is_fast = set(headers) <= {"X-Request-Id"}
    assert (fast.fast_count() > before) == is_fast


def test_a_list_of_models_follows_every_change(fast: Site) -> None:
    """A list that was sent before is not sent to another caller, nor after a change of rights or models."""
    ctl = fast.daemon.run_ctl
    assert ctl("permission", "set", "features.api_keys=true").returncode == 0
    user, other = make_user(fast, "reader"), make_user(fast, "other")

    def seen(key: str) -> list[str]:
        first, second = (ids_of(reply) for reply in lists(fast, key, 2))
        assert first == second
        return first

    assert (seen(fast.key), seen(user), seen(other)) == (MODELS, [], [])
    assert ctl("model", "grant", "o.m", "--user", "reader@example.org").returncode == 0
    before = fast.fast_count()
    assert (seen(user), seen(other), seen(fast.key)) == (["o.m"], [], MODELS)
    assert fast.fast_count() > before
    for expected in ([], ["o.m"]):
        toggle = "POST /api/v1/models/model/toggle?id=o.m HTTP/1.1\r\nHost: a\r\n"
        head = f"{toggle}Authorization: Bearer {fast.key}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        assert exchange(fast.daemon.base_url, head.encode())[0].status == 200
        assert (seen(user), seen(fast.key)) == (expected, MODELS)
    assert ctl("model", "revoke-access", "o.m", "--user", "reader@example.org").returncode == 0
    assert seen(user) == []
    assert ctl("user", "change", "reader@example.org", "--role", "admin").returncode == 0
    # The default permission of keys is that of users.
    assert [reply.status for reply in lists(fast, user, 2)] == [403, 403]
    assert ctl("user", "change", "reader@example.org", "--role", "user").returncode == 0
    assert seen(user) == []
    assert ctl("model", "grant", "o.m", "--user", "reader@example.org").returncode == 0
    assert seen(user) == ["o.m"]
    assert ctl("setting", "set", "ENABLE_API_KEYS=false").returncode == 0
    assert [reply.status for reply in lists(fast, user, 2)] == [403, 403]
    assert ctl("setting", "set", "ENABLE_API_KEYS=true").returncode == 0
    assert seen(user) == ["o.m"]
    assert ctl("user", "deactivate", "reader@example.org").returncode == 0
    assert [reply.status for reply in lists(fast, user, 2)] == [401, 401]

"""Limits and budgets of a running daemon: refusals in each dialect, what is left, and a killed daemon."""

import http.client
import json
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from gatewayd.completions.records import Body
from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.daemons.failing_provider_site import configuration
from tests.fakes.http.multipart_forms import FORM, field, file_part, form
from tests.fakes.http.raw_http import Reply as Answer
from tests.fakes.http.raw_http import send
from tests.fakes.providers.all_routes_upstream import Everything
from tests.fakes.providers.background_upstream import Provider, background_upstream
from tests.fakes.providers.upstream import (
    SILENCE,
    Recorded,
    Reply,
    json_reply,
    openai_chunk,
    openai_completion,
    sse,
)

PASSWORD = "correct horse"
LIMITS = "/api/v1/limits"


class LimitSite:
    """A daemon over one provider, with its first administrator."""

    def __init__(self, daemon: Daemon, provider: Provider, token: str) -> None:
        self.daemon, self.provider, self.token = daemon, provider, token

    def send(self, path: str, body: Any = None, method: str = "POST") -> Answer:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        return send(self.daemon.base_url, method, path, data, headers)

    def limit(self, **fields: Any) -> str:
        """Set a limit and return its id."""
        reply = self.send(LIMITS, fields, "PUT")
        assert reply.status == 200, reply
        made: str = reply.json["id"]
        return made

    def ask(self, model: str = "o.m", path: str = "/v1/chat/completions", **fields: Any) -> Answer:
        turns = [{"role": "user", "content": "hi"}]
        return self.send(path, {"model": model, "messages": turns, "max_tokens": 40, **fields})

    def uses(self) -> dict[str, dict[str, Any]]:
        """Return the use of the administrator's own limits."""
        limits = self.send(f"{LIMITS}/own", method="GET").json["limits"]
        return {use["what"]: use for limit in limits for use in limit["uses"]}


class FarResponses(Everything):
    """A provider that has a response, `far`."""

    far: Body | None = None

    def _got(self, request: Recorded) -> Reply | None:
        return json_reply(self.far) if request.path == "/v1/responses/resp_far" else super()._got(request)


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with background_upstream(("m", "other"), kind=FarResponses) as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Path:
    folder = tmp_path_factory.mktemp("limits")
    (folder / "gatewayd.toml").write_text(configuration(provider.url))
    return folder


@pytest.fixture(scope="module")
def site(folder: Path, provider: Provider) -> Iterator[LimitSite]:
    settings = {"MODEL_QUEUES": "o.other=1", "QUEUE_LENGTH": "1", "STREAM_HEAD_TIMEOUT": "0.1"}
    with running_daemon(folder / "state", "-f", str(folder / "gatewayd.toml"), **settings) as daemon:
        form = {"name": "Root", "email": "root@example.org", "password": PASSWORD}
        token = daemon.call("POST", "/api/v1/auths/signup", form)[1]["token"]
        yield LimitSite(daemon, provider, token)


@pytest.fixture(autouse=True)
def unlimited(site: LimitSite) -> Iterator[None]:
    """After each test nothing is limited."""
    site.provider.script()
    yield
    for limit in site.send(LIMITS, method="GET").json["limits"]:
        assert site.send(f"{LIMITS}/{limit['id']}", method="DELETE").status == 200


def test_requests_a_minute_in_the_openai_dialect(site: LimitSite) -> None:
    assert "x-ratelimit-limit-requests" not in site.ask().headers
    site.limit(default=True, requests_per_minute=2)
    assert site.ask().headers["x-ratelimit-remaining-requests"] == "1"
    streamed = site.ask(stream=True)
    assert streamed.headers["x-ratelimit-remaining-requests"] == "0"
    asked = len(site.provider.fake.requests)
    refused = site.ask()
    assert (refused.status, refused.headers["x-ratelimit-remaining-requests"]) == (429, "0")
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert refused.json["error"]["type"] == "rate_limit_error"
    assert refused.json["error"]["code"] == "rate_limit_exceeded"
    assert "2 requests a minute" in refused.json["error"]["message"]
    assert len(site.provider.fake.requests) == asked
    embedded = site.send("/v1/embeddings", {"model": "o.m", "input": "hi"})
    assert embedded.status == 429


def test_the_messages_dialect_has_its_own_headers(site: LimitSite) -> None:
    site.limit(default=True, requests_per_minute=1)
    answered = site.ask("a.m", "/v1/messages")
    assert answered.headers["anthropic-ratelimit-requests-limit"] == "1"
    refused = site.ask("a.m", "/v1/messages")
    assert (refused.status, refused.json["error"]["type"]) == (429, "rate_limit_error")
    assert refused.headers["anthropic-ratelimit-requests-remaining"] == "0"
    assert refused.headers["anthropic-ratelimit-requests-reset"].endswith("Z")
    assert not any(name.startswith("x-ratelimit") for name in refused.headers)


def test_the_stricter_of_two_limits_is_told(site: LimitSite) -> None:
    theirs = {"x-ratelimit-limit-requests": "10", "x-ratelimit-remaining-requests": "3"}
    site.limit(default=True, requests_per_minute=100)
    reply = json_reply(openai_completion("a"))
    site.provider.script(Reply(headers=theirs, steps=reply.steps, content_type="application/json"))
    answered = site.ask().headers
    assert answered["x-ratelimit-remaining-requests"] == "3"
    site.limit(default=True, requests_per_minute=4)
    site.provider.script(Reply(headers=theirs, steps=reply.steps, content_type="application/json"))
    assert site.ask().headers["x-ratelimit-limit-requests"] == "4"
    # A native request to a runtime has them as well, streamed and whole.
    site.limit(default=True, requests_per_minute=50)
    for stream in (True, False):
        native = site.ask("l.m", "/ollama/api/chat", stream=stream)
        assert (native.status, native.headers["x-ratelimit-limit-requests"]) == (200, "50")


def test_a_response_in_the_background_counts_when_its_end_is_read(site: LimitSite) -> None:
    site.limit(user="root@example.org", budgets=["1000tokens/month"])
    far = site.provider.fake
    assert isinstance(far, FarResponses)
    head = {"id": "resp_far", "object": "response", "created_at": 1, "model": "m", "output": []}
    usage = {"input_tokens": 100, "output_tokens": 200, "total_tokens": 300}
    ended = {**head, "status": "completed", "usage": usage}
    site.provider.script(json_reply({**head, "status": "queued", "usage": None}))
    asked = {"model": "o.m", "input": "hi", "background": True, "max_output_tokens": 40}
    assert site.send("/v1/responses", asked).json["status"] == "queued"
    assert site.uses()["1000tokens/month"]["used"] == "1tokens"
    far.far = {**head, "status": "in_progress", "usage": None}
    assert site.send("/v1/responses/resp_far", method="GET").json["status"] == "in_progress"
    assert site.uses()["1000tokens/month"]["used"] == "1tokens"
    far.far = ended
    with ThreadPoolExecutor(2) as pool:
        polls = list(pool.map(lambda _: site.send("/v1/responses/resp_far", method="GET"), range(2)))
    assert [poll.json["usage"] for poll in polls] == [usage] * 2
    assert site.uses()["1000tokens/month"]["used"] == "300tokens"
    assert site.send("/v1/responses/resp_far", method="GET").json["status"] == "completed"
    assert site.uses()["1000tokens/month"]["used"] == "300tokens"


def test_a_budget_counts_every_path_and_is_exhausted(site: LimitSite) -> None:
    site.limit(user="root@example.org", budgets=["1000tokens/month"], warn_percent=1)
    for path, model in (
        ("/v1/chat/completions", "o.m"),
        ("/v1/messages", "a.m"),
        ("/v1/chat/completions", "l.m"),
        ("/ollama/api/chat", "l.m"),
    ):
        before = int(site.uses()["1000tokens/month"]["used"].removesuffix("tokens"))
        assert site.ask(model, path).status == 200
        after = site.uses()["1000tokens/month"]
        assert int(after["used"].removesuffix("tokens")) > before, path
    site.limit(user="root@example.org", budgets=["1tokens/month"])
    refused = site.ask()
    assert (refused.status, refused.headers["x-should-retry"]) == (429, "false")
    assert (refused.json["error"]["type"], refused.json["error"]["code"]) == (
        "insufficient_quota",
        "insufficient_quota",
    )
    assert int(refused.headers["retry-after"]) > 0
    messages = site.ask("a.m", "/v1/messages")
    assert (messages.status, messages.headers["x-should-retry"]) == (429, "false")
    site.daemon.wait_for("a budget has reached its warning")


def test_money_without_a_price_is_refused(site: LimitSite) -> None:
    site.limit(default=True, budgets=["1usd/day"])
    refused = site.ask("o.m")
    assert (refused.status, refused.json["error"]["code"]) == (403, "price_unknown")


def test_limits_of_others_are_not_mine_to_see(site: LimitSite) -> None:
    limit_id = site.limit(model="unused", parallel=1)
    form = {"name": "Ann", "email": "ann@example.org", "password": PASSWORD, "role": "user"}
    token = site.send("/api/v1/auths/add", form).json["token"]
    other = LimitSite(site.daemon, site.provider, token)
    for method, path in (
        ("GET", LIMITS),
        ("GET", f"{LIMITS}/{limit_id}"),
        ("DELETE", f"{LIMITS}/{limit_id}"),
    ):
        assert other.send(path, method=method).status in {401, 403}
    assert other.send(LIMITS, {"user": "root@example.org", "parallel": 0}, "PUT").status in {401, 403}
    assert [each["id"] for each in other.send(f"{LIMITS}/own", method="GET").json["limits"]] == [limit_id]


def test_calls_wait_in_the_queue_of_their_model(site: LimitSite) -> None:
    def busy(pool: ThreadPoolExecutor) -> "Future[Answer]":
        """Take the one place until the provider is released."""
        site.provider.script(Reply(steps=[sse(openai_chunk(content="one")), SILENCE]))
        held = pool.submit(site.ask, "o.other", stream=True)
        site.provider.wait_silent()
        return held

    with ThreadPoolExecutor(3) as pool:
        for is_stream in (False, True):
            held = busy(pool)
            # The queue has room for one of these two.
            both = [pool.submit(site.ask, "o.other", stream=is_stream) for _ in range(2)]
            refused = next(as_completed(both, 10))
            [waiting] = [each for each in both if each is not refused]
            assert refused.result().json["error"]["code"] == "queue_full"
            assert int(refused.result().headers["retry-after"]) >= 1
            assert site.ask().status == 200
            if is_stream:
                time.sleep(0.1)
            site.provider.release()
            assert held.result(10).status == 200
            answer = waiting.result(10)
            assert answer.status == 200
            if is_stream:
                # The head and the heartbeat came while it waited.
                assert answer.body.startswith(b": keep-alive")
                assert answer.body.endswith(b"data: [DONE]\n\n")
            else:
                assert answer.headers["x-gateway-queue-position"] == "1"
                assert float(answer.headers["x-gateway-queue-time"]) > 0


def test_a_quota_of_storage_refuses_files_of_each_path(site: LimitSite) -> None:
    """Documents, files of batches, and texts that become files; by the declared length and as bytes come."""
    kilobyte = 1000
    limit = site.limit(user="root@example.org", storage_bytes=500 * kilobyte)

    def upload(path: str, size: int, *, is_chunked: bool = False) -> Answer:
        body = form(field("purpose", "batch"), file_part(b"x" * size))
        headers = {"Authorization": f"Bearer {site.token}", "Content-Type": FORM}
        pieces = [body[start : start + 50_000] for start in range(0, len(body), 50_000)]
        return send(site.daemon.base_url, "POST", path, pieces if is_chunked else body, headers)

    for path in ("/api/v1/files/?process=false", "/v1/files"):
        for is_chunked in (False, True):
            refused = upload(path, 800 * kilobyte, is_chunked=is_chunked)
            assert (refused.status, refused.json["error"]["code"]) == (413, "storage_quota_exceeded"), refused
            assert refused.json["error"]["message"] == (
                "cannot store the file: it exceeds the storage quota of 500000 bytes of this account,"
                " of which 0 are used"
            )
    assert upload("/api/v1/files/?process=false", 300 * kilobyte).status == 200
    assert upload("/v1/files", 199 * kilobyte).status == 200
    text = {"name": "notes.txt", "content": "words " * kilobyte}
    refused = site.send("/api/v1/retrieval/process/text", text)
    assert (refused.status, refused.json["error"]["code"]) == (413, "storage_quota_exceeded")
    assert site.uses()["storage_bytes"] == {
        "what": "storage_bytes",
        "used": "499000",
        "reserved": "",
        "left": "1000",
        "resets_at": None,
    }
    shown = json.loads(site.daemon.run_ctl("user", "show", "root@example.org", "-o", "json").stdout)
    assert (shown["storage_bytes"], shown["storage_left_bytes"]) == (499_000, 1000)
    assert site.send(f"{LIMITS}/{limit}", method="DELETE").status == 200
    assert upload("/v1/files", 800 * kilobyte).status == 200


def test_a_killed_daemon_forgets_no_reservation(tmp_path: Path, folder: Path, provider: Provider) -> None:
    """A stream is cut by kill -9: what it had reserved stays charged, and nothing is held after the start."""
    arguments = (tmp_path / "state", "-f", str(folder / "gatewayd.toml"))
    with running_daemon(*arguments) as daemon:
        person = {"name": "Root", "email": "root@example.org", "password": PASSWORD}
        token = daemon.call("POST", "/api/v1/auths/signup", person)[1]["token"]
        site = LimitSite(daemon, provider, token)
        site.limit(default=True, budgets=["1000tokens/month"], parallel=1)
        provider.script(Reply(steps=[sse(openai_chunk(content="one")), SILENCE]))
        connection = http.client.HTTPConnection(urlsplit(daemon.base_url).netloc, timeout=30)
        body = {"model": "o.m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request("POST", "/v1/chat/completions", json.dumps({**body, "max_tokens": 700}), headers)
        answer = connection.getresponse()
        assert b"one" in answer.read1(65536)
        held = site.uses()["1000tokens/month"]
        assert held["reserved"] == held["used"] != "0tokens"
        assert (site.uses()["parallel"]["used"], site.ask().status) == ("1", 429)
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait(10)
        connection.close()
    provider.release()
    provider.script()
    with running_daemon(*arguments) as daemon:
        site = LimitSite(daemon, provider, daemon.call("POST", "/api/v1/auths/signin", person)[1]["token"])
        kept = site.uses()["1000tokens/month"]
        assert (kept["used"], kept["reserved"]) == (held["used"], "")
        # What is left is too little for another one of this size, and enough for a small one.
        assert site.ask(max_tokens=700).status == 429
        assert site.ask(max_tokens=40).status == 200

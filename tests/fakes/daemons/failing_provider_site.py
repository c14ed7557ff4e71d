"""A gateway over one provider that fails in every way: its kinds of source, patient and hasty ones."""

import contextlib
import http.client
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.http.raw_http import Reply, send
from tests.fakes.providers.all_routes_upstream import Everything
from tests.fakes.providers.background_upstream import Provider, background_upstream
from tests.fakes.providers.questions import Question

PASSWORD = "correct horse"
KEY = "sk-upstream-canary-0123456789abcdef"
CHAT = "/api/chat/completions"
NAMES = {"o.m": "hosted", "a.m": "native", "l.m": "runtime"}
"""Model -> provider, one of each kind."""

MODELS = tuple(NAMES)
KINDS = {"hosted": ("openai", "/v1"), "native": ("anthropic", ""), "runtime": ("ollama", "")}


def _table(name: str, prefix: str, url: str, **times: float) -> str:
    kind, path = KINDS[name]
    lines = [f'name = "{name}{"".join(f" {time}" for time in times.values())}"', f'kind = "{kind}"']
    lines += [f'base_url = "{url}{path}"', f'prefix = "{prefix}"', f'key = "{KEY}"']
    lines += [f"{name} = {value}" for name, value in times.items()]
    return "\n".join(["[[providers]]", *lines, ""])


def configuration(url: str) -> str:
    """Return the providers: `o.` `a.` `l.`, and behind `p` patient, behind `h` hasty ones of each kind."""
    tables = []
    for name in KINDS:
        first = {"hosted": "o", "native": "a", "runtime": "l"}[name]
        tables.append(_table(name, f"{first}.", url))
        tables.append(_table(name, f"p{first}.", url, first_byte_timeout=60, stream_idle_timeout=60))
        tables.append(
            _table(name, f"h{first}.", url, connect_timeout=1, first_byte_timeout=1, stream_idle_timeout=1)
        )
    return "\n".join(tables)


@dataclass
class OpenStream:
    """A stream that has begun."""

    question: Question
    model: str
    answer: http.client.HTTPResponse
    got: bytes

    def rest(self) -> Reply:
        """Read to the end and return the whole reply."""
        headers = {name.lower(): value for name, value in self.answer.getheaders()}
        return Reply(self.answer.status, headers, self.got + self.answer.read())


@dataclass
class Site:
    """A running gateway with an administrator's key, and the provider behind all of its models."""

    daemon: Daemon
    provider: Provider
    key: str = ""

    def ask(self, question: Question, model: str, *, stream: bool) -> Reply:
        """Ask a model in a dialect and return the whole reply."""
        return self.post(question.path, question.asked(model, stream=stream))

    def post(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> Reply:
        """Send a body with the key."""
        signed = {"Authorization": f"Bearer {self.key}", **(headers or {})}
        return send(self.daemon.base_url, "POST", path, body, signed)

    def chat(self, model_id: str = "o.m", **fields: Any) -> Reply:
        """Ask a model and return the whole reply."""
        return self.post(CHAT, json.dumps(question(model_id, **fields)).encode())

    def stream(self, model_id: str = "o.m", **fields: Any) -> Reply:
        """Ask a model for a stream and return all of it."""
        return self.chat(model_id, stream=True, **fields)

    @contextlib.contextmanager
    def opened(self, question: Question, model: str, until: bytes = b"one") -> Iterator["OpenStream"]:
        """Ask for a stream and read its head and until it says "one"; then the provider may be silent."""
        connection = http.client.HTTPConnection(urlsplit(self.daemon.base_url).netloc, timeout=30)
        with contextlib.closing(connection):
            headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
            connection.request("POST", question.path, question.asked(model, stream=True), headers)
            answer = connection.getresponse()
            assert answer.status == 200
            got = b""
            while until not in got:
                part = answer.read1(65536)
                assert part, got
                got += part
            yield OpenStream(question, model, answer, got)

    def wait_listed(self) -> None:
        """Wait until every provider has told its models."""
        signed = {"Authorization": f"Bearer {self.key}"}
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            listed = self.daemon.call("GET", "/v1/models?refresh=true", None, signed)[1]["data"]
            if len(listed) == 3 * len(KINDS):
                return
        raise AssertionError("not every provider told its models")

    @contextlib.contextmanager
    def tended(self) -> Iterator[None]:
        """Begin a test with a provider that answers by itself, and see that the daemon is well after it."""
        self.provider.script()
        yield
        self.provider.release()
        self.assert_well()

    def assert_well(self) -> None:
        """Check that the daemon lives, and that its log holds neither a traceback nor the provider's key."""
        assert self.daemon.process.poll() is None
        assert self.daemon.call("GET", "/health")[0] == 200
        log = "".join(self.daemon.log)
        assert "Traceback" not in log
        assert KEY not in log


def question(model_id: str, **fields: Any) -> dict[str, Any]:
    """Return a chat request."""
    return {"model": model_id, "messages": [{"role": "user", "content": "hi"}], **fields}


@contextlib.contextmanager
def opened_faulty(folder: Path) -> Iterator[Site]:
    """Run the gateway until the end of the block."""
    with background_upstream(kind=Everything) as provider:
        file = folder / "gatewayd.toml"
        file.touch(0o600)
        file.write_text(configuration(provider.url))
        with running_daemon(folder / "state", "-f", str(file), ENABLE_API_KEYS="true") as daemon:
            made = Site(daemon, provider, make_key(daemon))
            made.wait_listed()
            yield made


def make_key(daemon: Daemon) -> str:
    """Make the first administrator and return a key."""
    form = {"name": "Root", "email": "root@example.org", "password": PASSWORD}
    session = daemon.call("POST", "/api/v1/auths/signup", form)[1]
    signed = {"Authorization": f"Bearer {session['token']}"}
    group = {"name": "g", "description": "", "permissions": {"features": {"api_keys": True}}}
    made = daemon.call("POST", "/api/v1/groups/create", group, signed)[1]["id"]
    daemon.call("POST", f"/api/v1/groups/id/{made}/users/add", {"user_ids": [session["id"]]}, signed)
    key: str = daemon.call("POST", "/api/v1/auths/api_key", {}, signed)[1]["api_key"]
    return key

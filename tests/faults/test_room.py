"""A thousand hostile connections of one account, or of nobody, keep nobody else out."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.http.raw_http import send
from tests.fakes.providers.marked_streams import HEAD, LIST, Marked, running_marked
from tests.fakes.providers.upstream import openai_chunk, sse
from tests.faults import hostile
from tests.faults.hostile import OF_ACCOUNT, OF_NOBODY, Sent, Target, attacking, bad_token, hammering

pytestmark = pytest.mark.faults

FILES = 1000
CONNECTIONS = 1000
HAMMERERS = 200
SECONDS = 2.0
SPIN_SECONDS = 0.2
# Of the short form, which runs beside other tests.
FEW_FILES = 300
UNHURRIED = 20.0
LARGE = 12 * 1024 * 1024
PASSWORD = "correct-horse-canary"
PROVIDERS = """
[[providers]]
name = "quiet"
base_url = "{url}/v1"
"""
HELLO = {"role": "assistant", "content": "hello"}
ANSWER = json.dumps({"choices": [{"index": 0, "message": HELLO, "finish_reason": "stop"}]}).encode()


class Quiet(Marked):
    """A provider that answers chats at once, but those that say "hold" never to the end."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or 0)
                body = await reader.readexactly(length)
                if b'"hold"' in body:
                    event = sse(openai_chunk(content="a"))
                    writer.write(HEAD + b"%x\r\n%s\r\n" % (len(event), event))
                    continue
                answer = ANSWER if length else LIST
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
                writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(answer), answer))
        writer.close()


def slowness() -> float:
    """Return how many times longer work takes than on a machine that does nothing else, at least 1."""
    began, used = time.monotonic(), time.process_time()
    while time.process_time() < used + SPIN_SECONDS:
        pass
    return max(1.0, (time.monotonic() - began) / SPIN_SECONDS)


def ids_of(kinds: Sequence[Sent]) -> str:
    return (
        kinds[0].__name__
        if len(kinds) == 1
        else "all of an account"
        if kinds is OF_ACCOUNT
        else "all of nobody"
    )


@dataclass(frozen=True)
class Attacked:
    """A gateway with few descriptors, an attacker, and somebody else."""

    daemon: Daemon
    target: Target
    other: str
    uploaded: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.daemon.base_url

    async def assert_open(self, seconds: float) -> None:
        """Check that somebody else signs in, chats, uploads, and that the health is told, each in time."""
        done: dict[str, float] = {}
        for name, work in (
            ("sign in", self.sign_in),
            ("chat", self.chat),
            ("upload", self.upload),
            ("health", self.health),
            ("gatewayctl health", self.ctl_health),
        ):
            began = time.monotonic()
            await asyncio.wait_for(work(), 30)
            done[name] = time.monotonic() - began
        most = seconds * slowness()
        assert max(done.values()) < most, (done, most)

    async def sign_in(self) -> None:
        form = {"email": "other@example.org", "password": PASSWORD}
        await self.post("/api/v1/auths/signin", json=form)

    async def chat(self) -> None:
        asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        answer = await self.post("/api/chat/completions", json=asked, headers=self.signed)
        assert answer["choices"][0]["message"]["content"] == "hello"

    async def upload(self) -> None:
        form = aiohttp.FormData()
        form.add_field("file", b"hello", filename="a.txt", content_type="text/plain")
        made = await self.post("/api/v1/files/?process=false", data=form, headers=self.signed)
        self.uploaded.append(str(made["id"]))

    async def assert_kept(self) -> None:
        """Check that what somebody else has uploaded is there."""
        assert self.uploaded
        async with aiohttp.ClientSession(headers=self.signed) as session:
            for file_id in self.uploaded:
                async with session.get(f"{self.url}/api/v1/files/{file_id}/content") as reply:
                    assert (reply.status, await reply.read()) == (200, b"hello")

    async def health(self) -> None:
        async with aiohttp.ClientSession() as session, session.get(f"{self.url}/health") as reply:
            assert reply.status == 200

    async def ctl_health(self) -> None:
        done = await asyncio.to_thread(self.daemon.run_ctl, "health")
        assert done.returncode == 0, done

    @property
    def signed(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.other}"}

    async def post(self, path: str, **what: object) -> dict[str, object]:
        async with aiohttp.ClientSession() as session, session.post(self.url + path, **what) as reply:
            answer: dict[str, object] = await reply.json()
            assert reply.status == 200, answer
            return answer


@contextlib.asynccontextmanager
async def attacked_gateway(folder: Path, files: int) -> AsyncIterator[Attacked]:
    """Run a gateway that may open so many files, with two accounts."""
    with running_marked(Quiet()) as url:
        file = folder / "gatewayd.toml"
        file.write_text(PROVIDERS.format(url=url))
        settings = {
            "ENABLE_API_KEYS": "true",
            "DEFAULT_USER_ROLE": "user",
            "BYPASS_MODEL_ACCESS_CONTROL": "true",
            "DRAIN_TIMEOUT": "0",
        }
        with running_daemon(folder / "s", "-f", str(file), files=files, **settings) as daemon:
            attacked = await asyncio.to_thread(prepare, daemon)
            yield attacked
            await attacked.assert_kept()
            assert "Traceback" not in "".join(daemon.log)


def add_account(daemon: Daemon, root: str, name: str) -> str:
    """Make a user and return a session token."""
    form = {"name": name, "email": f"{name}@example.org", "password": PASSWORD, "role": "user"}
    made = daemon.call("POST", "/api/v1/auths/add", form, {"Authorization": f"Bearer {root}"})[1]
    return str(made["token"])


def prepare(daemon: Daemon) -> Attacked:
    """Make an administrator, an attacker with a large file, and somebody else."""
    form = {"name": "root", "email": "root@example.org", "password": PASSWORD}
    root = daemon.call("POST", "/api/v1/auths/signup", form)[1]["token"]
    tokens = [add_account(daemon, root, name) for name in ("attacker", "other")]
    signed = {"Authorization": f"Bearer {tokens[0]}", "Content-Type": hostile.FORM}
    file = hostile.BEGIN_OF_FORM + b"x" * LARGE + b"\r\n--b--\r\n"
    sent = send(daemon.base_url, "POST", "/api/v1/files/?process=false", file, signed)
    target = Target(urlsplit(daemon.base_url).port or 0, tokens[0], sent.json["id"], "m")
    return Attacked(daemon, target, tokens[1])


@pytest.mark.parametrize(
    "kinds", [*((kind,) for kind in (*OF_ACCOUNT, *OF_NOBODY)), OF_ACCOUNT, OF_NOBODY], ids=ids_of
)
async def test_hostile_connections_keep_nobody_out(tmp_path: Path, kinds: Sequence[Sent]) -> None:
    async with (
        attacked_gateway(tmp_path, FILES) as attacked,
        attacking(attacked.target, kinds, CONNECTIONS),
    ):
        await attacked.assert_open(SECONDS)


async def test_bad_credentials_on_ever_new_connections_keep_nobody_out(tmp_path: Path) -> None:
    async with (
        attacked_gateway(tmp_path, FILES) as attacked,
        hammering(attacked.target, bad_token, HAMMERERS),
    ):
        await attacked.assert_open(SECONDS)


@pytest.mark.short
async def test_some_hostile_connections_keep_nobody_out(tmp_path: Path) -> None:
    async with attacked_gateway(tmp_path, FEW_FILES) as attacked:
        for kinds in (OF_ACCOUNT, OF_NOBODY):
            async with attacking(attacked.target, kinds, FEW_FILES):
                await attacked.assert_open(UNHURRIED)

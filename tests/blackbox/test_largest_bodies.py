"""The largest bodies that each row takes, and the largest answers of a provider: others are served meanwhile.

A second process asks for the health all the time. What it waited because other programs had the processors
does not count, and a slow case is sent again: a busy machine is no fault of the daemon, whose work takes as
long each time.
"""

import contextlib
import json
import re
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

import orjson
import pytest

from gatewayctl.transport import UnixConnection
from gatewayctl.wire import base
from tests.fakes.daemons.bad_input_site import AUTHS, CHATS, MESSAGE_ID, SCIM, Site, opened_site
from tests.fakes.daemons.bad_input_site import PASSWORD as SITE_PASSWORD
from tests.fakes.daemons.role_site import SCIM_TOKEN
from tests.fakes.http.largest_bodies import (  # fmt: skip
    BODILESS,
    BODY,
    KINDS,
    MIB,
    PASSWORD,
    SMALL,
    BodyRow,
    control_rows,
    form,
    kinds_of,
    public_rows,
    value_of,
)
from tests.fakes.http.raw_http import connected, send
from tests.fakes.providers.upstream import Reply
from tests.suite.machine_speed import slowness

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

MAX_MILLISECONDS = 250
ATTEMPTS = 3
REST_SECONDS = 45
WAIT_SECONDS = 1.0
WRITE_PAUSE_SECONDS = 0.01
GROWTH = 1.1
MESSAGES = 9000
"""Messages of a long chat."""

PROVISIONING = {"SCIM_ENABLED": "true", "SCIM_TOKEN": SCIM_TOKEN, "SCIM_AUTH_PROVIDER": "idp"}


@dataclass
class Probe:
    """What the second process says."""

    process: subprocess.Popen[str]
    samples: list[tuple[float, float]] = field(default_factory=list)
    worst: dict[str, float] = field(default_factory=dict)
    slow: dict[str, float] = field(default_factory=dict)

    def read(self) -> None:
        """Take its lines until it ends."""
        for line in self.process.stdout or ():
            quick, crowd = line.split()
            self.samples.append((float(quick), float(crowd)))

    def watch(self, name: str, send_case: Callable[[], None]) -> None:
        """Send a case and remember its longest time; send it again while that is too long."""
        for _ in range(ATTEMPTS):
            begun = len(self.samples)
            send_case()
            self.worst[name] = max((quick for quick, _ in self.samples[begun:]), default=0.0)
            if self.worst[name] <= MAX_MILLISECONDS or self.worst[name] <= MAX_MILLISECONDS * slowness():
                return
        self.slow[name] = self.worst[name]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened_site(tmp_path_factory.mktemp("s"), BODY, **PROVISIONING) as opened:
        for noun, name in (("Users", "userName"), ("Groups", "displayName")):
            made = asked(
                opened,
                BodyRow("POST", f"{SCIM}/{noun}", {}, SMALL),
                b'{"%b":"p@example.org"}' % name.encode(),
            )
            opened.ids[noun] = json.loads(made[1])["id"]
        collection = opened.send("POST", "/api/v1/knowledge/create", b'{"name":"c","description":""}')
        opened.ids["knowledge"] = opened.ids["collections"] = collection.json["id"]
        yield opened


@pytest.fixture
def probe(site: Site) -> Iterator[Probe]:
    """Watch the daemon during a test, and check at its end that it was well all the time."""
    command = [
        sys.executable,
        "-m",
        "tests.fakes.daemons.health_probe",
        site.daemon.base_url,
        str(site.daemon.process.pid),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        probing = Probe(process)
        reader = threading.Thread(target=probing.read)
        reader.start()
        while not probing.samples:
            time.sleep(0.05)
        yield probing
        assert process.stdin is not None
        process.stdin.close()
        reader.join(60)
    assert not probing.slow


def path_of(site: Site, row: BodyRow) -> str:
    """Return a path of a row to something that exists, where there is such a thing."""
    if not row.is_control:
        return site.filled(row.path)
    noun = row.path.split("/")[2]
    values = {"ref": {"groups": "g", "collections": "c"}.get(noun, "root@example.org"), "family": "function"}
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], "functions"), row.path)


def credentials(site: Site, row: BodyRow) -> dict[str, str]:
    """Return the headers with which a row is called."""
    if row.is_control:
        return {base.HEADER: base.VERSION}
    return {"Authorization": f"Bearer {SCIM_TOKEN if row.path.startswith(SCIM) else site.admin}"}


def asked(site: Site, row: BodyRow, body: bytes) -> tuple[int, bytes]:
    """Send a body to a row and return status and body of the answer."""
    path, headers = path_of(site, row), credentials(site, row)
    if not row.is_control:
        reply = send(site.daemon.base_url, row.method, path, body, headers, seconds=60)
        return reply.status, reply.body
    with contextlib.closing(UnixConnection(site.daemon.socket, 60)) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request(row.method, path, body, {**headers, "Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()


def rows_of(site: Site) -> list[BodyRow]:
    """Return every row that takes a body, public ones, those of provisioning and of the control socket."""
    return [*public_rows(site.daemon.call("GET", "/openapi.json")[1]), *control_rows()]


@contextlib.contextmanager
def channel_to(site: Site, row: BodyRow) -> Iterator[socket.socket]:
    """Open a connection to the application that has a row."""
    if not row.is_control:
        with connected(site.daemon.base_url) as channel:
            yield channel
        return
    with contextlib.closing(UnixConnection(site.daemon.socket, 15)) as connection:
        connection.connect()
        yield connection.sock


def test_each_row_refuses_a_byte_more_than_it_takes(site: Site) -> None:
    bodiless: set[str] = set()
    for row in rows_of(site):
        told = {"Host": "x", "Content-Type": "application/json", "Connection": "close"}
        headers = {**told, **credentials(site, row), "Content-Length": str(row.size + 1)}
        lines = [
            f"{row.method} {path_of(site, row)} HTTP/1.1",
            *(": ".join(each) for each in headers.items()),
        ]
        with channel_to(site, row) as channel:
            channel.sendall("\r\n".join([*lines, "", ""]).encode())
            # A row that reads no body answers, or waits for what it passes over.
            channel.settimeout(WAIT_SECONDS)
            try:
                answer = channel.recv(65536)
            except TimeoutError:
                answer = b""
        if b" 413 " not in answer[:20]:
            bodiless.add(row.path)
            continue
        assert f"limit of {row.size} bytes".encode() in answer, row.name
    assert bodiless <= BODILESS, bodiless - BODILESS


GROUPS: dict[str, Callable[[BodyRow], bool]] = {
    "for models": lambda row: not row.is_control and row.size == BODY,
    "large": lambda row: not row.is_control and row.size > SMALL and row.size != BODY,
    "small": lambda row: not row.is_control and row.size <= SMALL,
    "control": lambda row: row.is_control,
}


@pytest.mark.parametrize("group", GROUPS)
def test_no_body_stops_the_daemon(site: Site, probe: Probe, group: str) -> None:
    # A change of the password would end the session.
    rows = [row for row in rows_of(site) if GROUPS[group](row) and row.path != PASSWORD]
    assert rows
    for row, kind in kinds_of(rows):
        probe.watch(f"{row.name}: {kind}", partial(send_kind, site, row, kind))


def send_kind(site: Site, row: BodyRow, kind: str) -> None:
    status, answer = asked(site, row, form(row, row.value(kind))[: row.size])
    # A provider may refuse what it is sent, and provisioning lacks parts of its standard.
    assert status in range(200, 500) or status in {501, 502}, (row.name, kind, answer[:500])
    # The provider of the tests keeps what it was sent.
    site.provider.fake.requests.clear()


def test_no_body_without_a_credential_stops_the_daemon(site: Site, probe: Probe) -> None:
    for path, size in ((f"{AUTHS}/signin", SMALL), (f"{AUTHS}/signup", SMALL), (CHATS[0], BODY)):
        for kind in KINDS:
            probe.watch(
                f"POST {path}: {kind}", partial(send_as_nobody, site, path, value_of(kind, size), size)
            )


def send_as_nobody(site: Site, path: str, value: bytes, size: int) -> None:
    both = b'{"email":%b,"password":%b,"name":"x"}' % (value, value)
    reply = site.send("POST", path, both if len(both) < size else value, token="")
    assert reply.status < 500, (path, reply)


ARGUMENTS: dict[str, Callable[[], str]] = {
    "lists": lambda: '{"a":[' + "[]," * 10_000_000 + "[]]}",
    "numbers": lambda: '{"a":[' + "1," * 14_000_000 + "1]}",
    "texts": lambda: '{"a":["' + '","' * 6_000_000 + '"]}',
    "brackets in a text": lambda: '{"a":"' + "[{," * 9_000_000 + '"}',
}
"""JSON in a text of a body: one value of it, whatever it holds."""


@pytest.mark.parametrize("model", ["a.m", "l.m"])
def test_no_arguments_of_calls_stop_the_daemon(site: Site, probe: Probe, model: str) -> None:
    for name, arguments in ARGUMENTS.items():
        probe.watch(f"{model}: {name}", partial(send_call, site, call_of(model, arguments())))


def call_of(model: str, arguments: str) -> bytes:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [call]}]
    body = json.dumps({"model": model, "messages": messages}, separators=(",", ":")).encode()
    assert len(body) < BODY
    return body


def send_call(site: Site, body: bytes) -> None:
    assert site.send("POST", CHATS[0], body).status == 400
    site.provider.fake.requests.clear()


def test_no_files_of_a_request_stop_the_daemon(site: Site, probe: Probe) -> None:
    known = [{"type": "collection", "id": f"k{number}"} for number in range(900)]
    preset = {"id": "p", "base_model_id": "o.m", "name": "P", "meta": {"knowledge": known}, "params": {}}
    assert site.send("POST", "/api/v1/models/create", json.dumps(preset).encode()).status == 200
    for kind, files in (
        ("different", [{"type": "file", "id": f"x{number}"} for number in range(40_000)]),
        ("equal", [{"type": "file", "id": "x"}] * 40_000),
    ):
        probe.watch(kind, partial(send_files, site, files))


def send_files(site: Site, files: Sequence[dict[str, str]]) -> None:
    body = {"model": "p", "messages": [{"role": "user", "content": "x"}], "files": files}
    reply = site.send("POST", CHATS[0], json.dumps(body).encode())
    assert reply.status == 200, reply
    site.provider.fake.requests.clear()


@cache
def long_chat_text() -> bytes:
    messages = {
        f"m{number}": {
            "id": f"m{number}",
            "parentId": f"m{number - 1}" if number else None,
            "role": "assistant" if number % 2 else "user",
            "content": "w\u00f6rds " * 30,
            "usage": {"a": 1, "b": 2.5},
        }
        for number in range(MESSAGES)
    }
    chat = {"title": "t", "history": {"messages": messages, "currentId": f"m{MESSAGES - 1}"}}
    return json.dumps({"chat": chat}).encode()


def test_no_long_chat_stops_the_daemon(site: Site, probe: Probe) -> None:
    def long_chat() -> None:
        made = orjson.loads(site.send("POST", "/api/v1/chats/new", long_chat_text()).body)
        own = f"/api/v1/chats/{made['id']}"
        for method, path in (
            ("GET", own),
            ("POST", f"{own}/pin"),
            ("POST", f"{own}/share"),
            ("POST", f"{own}/clone"),
        ):
            name = f"{method} {path.replace(made['id'], 'ID')}"
            probe.watch(name, partial(send_for_chat, site, method, path))
        forms = b'{"chats":[%b]}' % b",".join([long_chat_text()] * 3)
        probe.watch("POST /api/v1/chats/import", partial(import_beside_another, site, forms))
        site.send("DELETE", "/api/v1/chats/")

    long_chat()
    held = [settled(site, 0.0)]
    # What leaks grows each time; what is only held in pieces does not.
    while len(held) < 4 and (len(held) == 1 or held[-1] > held[-2] * GROWTH):
        long_chat()
        held.append(settled(site, held[-1] * GROWTH))
    assert held[-1] <= held[-2] * GROWTH, held


def send_for_chat(site: Site, method: str, path: str) -> None:
    reply = site.send(method, path, b"{}" if method == "POST" else None)
    assert reply.status == 200, (path, reply)
    assert len(orjson.loads(reply.body)["chat"]["history"]["messages"]) == MESSAGES


def import_beside_another(site: Site, forms: bytes) -> None:
    with writes_of_another(site) as waits:
        began = time.monotonic()
        assert site.send("POST", "/api/v1/chats/import", forms).status == 200
        took = time.monotonic() - began
    # One transaction for the whole import takes most of the time.
    assert max(waits) < took / 4


@contextlib.contextmanager
def writes_of_another(site: Site) -> Iterator[list[float]]:
    """Let another user write messages meanwhile, one after the other; yield the seconds that each took."""
    account = {"name": "o", "email": f"{uuid.uuid4()}@example.org", "password": SITE_PASSWORD}
    site.send("POST", f"{AUTHS}/add", json.dumps({**account, "role": "user"}).encode())
    token = site.send("POST", f"{AUTHS}/signin", json.dumps(account).encode()).json["token"]
    own = site.send("POST", "/api/v1/chats/new", b'{"chat":{}}', token=token).json["id"]
    waits: list[float] = []
    is_over = threading.Event()

    def write() -> None:
        while not is_over.wait(WRITE_PAUSE_SECONDS):
            began = time.monotonic()
            path = f"/api/v1/chats/{own}/messages/{uuid.uuid4()}"
            assert site.send("POST", path, b'{"content":"x"}', token=token).status == 200
            waits.append(time.monotonic() - began)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            yield waits
        finally:
            is_over.set()
            writing.result()


def settled(site: Site, wanted: float) -> float:
    """Return the MiB that the daemon holds once it is down to what is wanted, or no longer gives any back."""
    statm = Path(f"/proc/{site.daemon.process.pid}/statm")
    deadline = time.monotonic() + REST_SECONDS
    held = [0.0]
    while time.monotonic() < deadline:
        held.append(int(statm.read_text().split()[1]) * 4096 / MIB)
        if held[-1] <= wanted or (not wanted and len(held) > 13 and held[-1] >= min(held[-12:-1])):
            break
        time.sleep(0.5)
    return held[-1]


def whole(*parts: bytes, status: int = 200) -> Reply:
    return Reply(status=status, content_type="application/json", steps=[b"".join(parts)])


ANSWERS: dict[str, Callable[[], Reply]] = {
    "a whole answer": lambda: whole(
        b'{"choices": [{"message": {"role": "assistant", "content": "', b"x" * (31 * MIB), b'"}}]}'
    ),
    "a wide answer": lambda: whole(b'{"choices":[', b"{}," * 8_000_000, b"{}]}"),
    "a long answer": lambda: whole(b'{"a":"', b"x" * (100 * MIB)),
    "an error": lambda: whole(b'{"error":"', b"x" * (32 * MIB), b'"}', status=400),
    "an event": lambda: Reply(
        steps=[b'data: {"choices":[{"delta":{"content":"' + b"x" * (32 * MIB) + b'"}}]}\n\n']
    ),
    "a wide event": lambda: Reply(steps=[b'data: {"a":[' + b"[]," * 300_000 + b"[]]}\n\n"]),
    "many events": lambda: Reply(
        steps=[b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n' * 200_000]
    ),
}
"""Each is made when it is asked for: all together take a quarter of a GiB."""


@pytest.mark.parametrize("path", [CHATS[0], "/v1/messages", "/v1/responses"])
def test_no_answer_stops_the_daemon(site: Site, probe: Probe, path: str) -> None:
    for name, made in ANSWERS.items():
        answer = made()
        for is_streamed in (False, True):
            told = f"{path}: {name}, {'streamed' if is_streamed else 'whole'}"
            probe.watch(told, partial(ask_for, site, path, answer, is_streamed=is_streamed))


def ask_for(site: Site, path: str, answer: Reply, *, is_streamed: bool) -> None:
    site.provider.script(answer)
    body = {"model": "o.m", "max_tokens": 9, "stream": is_streamed, "input": "x"}
    messages = [{"role": "user", "content": MESSAGE_ID}]
    headers = {"Authorization": f"Bearer {site.admin}"}
    assert site.daemon.call("POST", path, {**body, "messages": messages}, headers)[0]

"""The largest bodies that each row takes, and the largest answers of a provider: others are served meanwhile.

A second process asks for the health all the time. What it waited because other programs had the processors
does not count, so that a busy machine is no fault of the daemon.
"""

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.site import AUTHS, CHATS, MESSAGE_ID, RUNTIME, Site, opened_site
from tests.fakes.upstream import Reply
from tests.fakes.wire import connected, send

pytestmark = pytest.mark.slow

MIB = 2**20
BODY = 32 * MIB
SMALL = MIB
TEXT = 64 * MIB
MAX_MILLISECONDS = 250
REST_SECONDS = 45
WAIT_SECONDS = 1.0
GROWTH = 1.1

LIMITS: dict[str, int] = {
    "/api/v1/chats/new": 32 * MIB,
    "/api/v1/chats/{id}": 32 * MIB,
    "/api/v1/chats/{id}/messages/{message_id}": 32 * MIB,
    "/api/v1/chats/import": 128 * MIB,
    "/api/v1/files/{id}/data/content/update": TEXT,
    "/api/v1/retrieval/process/file": TEXT,
    "/api/v1/retrieval/process/text": TEXT,
    "/api/v1/retrieval/process/files/batch": TEXT,
    "/api/v1/knowledge/{id}/files/batch/add": 8 * MIB,
    "/api/v1/knowledge/{id}/sync/diff": 32 * MIB,
    "/api/v1/knowledge/{id}/sync/cleanup": 32 * MIB,
    "/api/v1/functions/sync": 64 * MIB,
    "/api/v1/functions/create": 8 * MIB,
    "/api/v1/functions/id/{id}/update": 8 * MIB,
    "/api/v1/tools/create": 8 * MIB,
    "/api/v1/tools/id/{id}/update": 8 * MIB,
    "/api/v1/configs/tool_servers": 16 * MIB,
    "/api/v1/configs/tool_servers/verify": 16 * MIB,
}
"""Bytes that a row takes where that is not `request_body_limit`, for what goes to models, nor 1 MiB."""

SIGN_OUT = f"{AUTHS}/signout"
BODILESS = {
    "/api/tasks/chat/{chat_id}/stop",
    "/api/tasks/stop/{task_id}",
    "/api/v1/chats/archive/all",
    "/api/v1/chats/unarchive/all",
    "/api/v1/chats/{id}/archive",
    "/api/v1/chats/{id}/clone/shared",
    "/api/v1/chats/{id}/pin",
    "/api/v1/chats/{id}/share",
    "/api/v1/events/ticket",
    "/api/v1/files/{id}/process",
    "/api/v1/functions/id/{id}/toggle",
    "/api/v1/functions/id/{id}/toggle/global",
    "/api/v1/groups/id/{id}/users",
    "/api/v1/knowledge/{id}/reset",
    "/api/v1/models/model/toggle",
    "/ollama/api/blobs/{digest}",
}
"""Rows that read no JSON: whatever comes is passed over."""

MODEL_ROWS = ("/completions", "/responses", "/embeddings", "/message", "/messages", "/count_tokens", "/event")
MODEL_ROWS_BELOW = (RUNTIME, "/api/chat/", "/api/v1/events/calls/")
TASK_ROWS = re.compile(r"/api/v1/tasks/[a-z_]+/completions")


def limit_of(path: str) -> int:
    """Return how many bytes a row takes; one that is not in the table takes 1 MiB."""
    if path in LIMITS:
        return LIMITS[path]
    is_for_models = path.startswith(MODEL_ROWS_BELOW) or path.endswith(MODEL_ROWS)
    return BODY if is_for_models else SMALL


def _text(unit: str, size: int) -> bytes:
    return b'"' + unit.encode() * ((size - 2048) // len(unit.encode())) + b'"'


def _many(unit: bytes, count: int, size: int) -> bytes:
    return b"[" + (unit + b",") * min(count, (size - 2048) // (len(unit) + 1)) + unit + b"]"


KINDS: dict[str, Callable[[int, int], bytes]] = {
    "text": lambda size, _: _text("x", size),
    "multi-byte": lambda size, _: _text("\u6f22\U0001f600", min(size, 8 * MIB)),
    "escapes": lambda size, _: _text("\\n", size),
    "NULs": lambda size, _: _text("\\u0000", size),
    "integers": lambda size, many: _many(b"7", many, size),
    "floats": lambda size, many: _many(b"-1.2345678901234567e-8", many, size),
    "objects": lambda size, many: _many(b'{"a":{}}', many // 22, size),
    "names": lambda _, many: b"{" + b",".join(b'"%d":1' % number for number in range(many // 4)) + b"}",
    "one name": lambda _, many: b"{" + b'"k":1,' * (many // 2) + b'"k":1}',
    "depth": lambda _, many: b"[" * 58 + b"]" * 58,
    "lists over the limit": lambda size, _: _many(b"[]", size, size),
}
"""Hostile values for a body of so many bytes that may hold so many values."""


def values_of(size: int, names: Sequence[str] = tuple(KINDS)) -> dict[str, bytes]:
    """Return hostile values that a body of so many bytes may hold."""
    return {name: KINDS[name](size, 18_000 if size <= SMALL else 450_000) for name in names}


@dataclass
class Probe:
    """What the second process says."""

    process: subprocess.Popen[str]
    samples: list[tuple[float, float]] = field(default_factory=list)
    worst: dict[str, float] = field(default_factory=dict)

    def read(self) -> None:
        """Take its lines until it ends."""
        for line in self.process.stdout or ():
            quick, crowd = line.split()
            self.samples.append((float(quick), float(crowd)))

    def note(self, name: str, begun: int) -> None:
        """Remember the longest time of a case, whose samples begin at a place."""
        self.worst[name] = max((quick for quick, _ in self.samples[begun:]), default=0.0)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened_site(tmp_path_factory.mktemp("s"), body_limit=BODY) as opened:
        yield opened


@pytest.fixture
def probe(site: Site) -> Iterator[Probe]:
    """Watch the daemon during a test, and check at its end that it was well all the time."""
    command = [
        sys.executable,
        "-m",
        "tests.fakes.healthprobe",
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
    slow = {name: worst for name, worst in probing.worst.items() if worst > MAX_MILLISECONDS}
    assert not slow


def body_rows(site: Site) -> list[tuple[str, str, list[str]]]:
    """Return method, path template and known field names of every public row that takes JSON."""
    document = site.daemon.call("GET", "/openapi.json")[1]
    schemas = document["components"]["schemas"]
    rows = []
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            taken = operation.get("requestBody", {}).get("content", {})
            if "application/json" in taken and "/scim/" not in path and path != SIGN_OUT:
                schema = taken["application/json"]["schema"]
                known = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
                rows.append((method.upper(), path, list(known.get("properties", {}))))
    return rows


def form(path: str, fields: Sequence[str], value: bytes) -> bytes:
    """Return a body in which a value stands where it is most likely looked at."""
    if path in CHATS or path.endswith(("/messages", "/message", "/chat")):
        is_list = value.startswith(b"[")
        messages = value if is_list else b'[{"role":"user","content":%b}]' % value
        return b'{"model":"o.m","max_tokens":9,"messages":%b}' % messages
    if path.startswith(("/api/v1/chats/new", "/api/v1/chats/{id}")) and "chat" in fields:
        return b'{"chat":{"title":"t","history":{"messages":{"m":{"content":%b}}}}}' % value
    if path.endswith("/import"):
        return b'{"chats":[{"chat":{"params":%b}},{"chat":{"history":{"messages":%b}}}]}' % (value, value)
    known = [name for name in fields if name not in {"model", "folder_id"}] or ["input", "prompt"]
    members = b",".join(
        b'"%b":%b' % (name.encode(), value if place == 0 else b'"a"') for place, name in enumerate(known)
    )
    return b'{"model":"o.m",%b}' % members


def test_each_row_refuses_a_byte_more_than_it_takes(site: Site) -> None:
    bodiless: set[str] = set()
    for method, path, _ in body_rows(site):
        head = (
            f"{method} {site.filled(path)} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {site.admin}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {limit_of(path) + 1}\r\n"
            "Connection: close\r\n\r\n"
        )
        with connected(site.daemon.base_url) as channel:
            channel.sendall(head.encode())
            # A row that reads no body answers, or waits for what it passes over.
            channel.settimeout(WAIT_SECONDS)
            try:
                answer = channel.recv(65536)
            except TimeoutError:
                answer = b""
        if b" 413 " not in answer[:20]:
            bodiless.add(path)
            continue
        assert f"limit of {limit_of(path)} bytes".encode() in answer, path
    assert bodiless <= BODILESS, bodiless - BODILESS


def test_no_body_stops_the_daemon(site: Site, probe: Probe) -> None:
    tried = {"/api/v1/chats/new", CHATS[0], "/v1/embeddings", "/api/v1/knowledge/{id}/sync/diff"}
    rows = [row for row in body_rows(site) if row[1] in tried]
    seen_families: set[str] = set()
    for place, (method, path, fields) in enumerate(rows):
        size = limit_of(path)
        names = list(KINDS)
        # Rows of one handler share the long texts; each has some of the others.
        family = re.sub(r"^/(?:api|openai|v1|ollama|api/v1|ollama/v1)(?=/)", "", path)
        chosen = [names[(place + step) % len(names)] for step in (0, 4)]
        if size > SMALL and family in seen_families:
            chosen = ["objects", "integers"]
        elif path in {"/api/v1/chats/new", CHATS[0]}:
            chosen = names
        seen_families.add(family)
        for name, value in values_of(size, chosen).items():
            begun = len(probe.samples)
            body = form(path, fields, value)[:size]
            headers = {"Authorization": f"Bearer {site.admin}"}
            reply = send(site.daemon.base_url, method, site.filled(path), body, headers, seconds=60)
            # A provider may refuse what it is sent.
            assert reply.status in range(200, 500) or reply.status == 502, (path, name, reply.status)
            probe.note(f"{method} {path}: {name}", begun)


def test_no_body_without_a_credential_stops_the_daemon(site: Site, probe: Probe) -> None:
    for path, size in ((f"{AUTHS}/signin", SMALL), (f"{AUTHS}/signup", SMALL), (CHATS[0], BODY)):
        for name, value in values_of(size).items():
            begun = len(probe.samples)
            sent = (
                b'{"email":%b,"password":%b,"name":"x"}' % (value, value)
                if size > 2 * len(value) + 64
                else value
            )
            reply = site.send("POST", path, sent, token="")
            assert reply.status < 500, (path, name, reply)
            probe.note(f"POST {path}: {name}", begun)


def many_messages(count: int) -> dict[str, Any]:
    return {
        f"m{number}": {
            "id": f"m{number}",
            "parentId": f"m{number - 1}" if number else None,
            "role": "assistant" if number % 2 else "user",
            "content": "w\u00f6rds " * 30,
            "usage": {"a": 1, "b": 2.5},
        }
        for number in range(count)
    }


def test_no_long_chat_stops_the_daemon(site: Site, probe: Probe) -> None:
    def long_chat() -> None:
        chat = {"title": "t", "history": {"messages": many_messages(9000), "currentId": "m8999"}}
        made = site.send("POST", "/api/v1/chats/new", json.dumps({"chat": chat}).encode()).json
        own = f"/api/v1/chats/{made['id']}"
        for method, path in (
            ("GET", own),
            ("POST", f"{own}/pin"),
            ("POST", f"{own}/share"),
            ("POST", f"{own}/clone"),
        ):
            begun = len(probe.samples)
            reply = site.send(method, path, b"{}" if method == "POST" else None)
            assert reply.status == 200, (path, reply)
            assert len(reply.json["chat"]["history"]["messages"]) == 9000
            probe.note(f"{method} {path.replace(made['id'], 'ID')}", begun)
        forms = {"chats": [{"chat": chat}] * 3}
        assert site.send("POST", "/api/v1/chats/import", json.dumps(forms).encode()).status == 200
        site.send("DELETE", "/api/v1/chats/")

    long_chat()
    before = settled(site, 0.0)
    long_chat()
    assert settled(site, before * GROWTH) <= before * GROWTH


def settled(site: Site, wanted: float) -> float:
    """Return the MiB that the daemon holds once it is down to what is wanted, or no longer gives any back."""
    statm = Path(f"/proc/{site.daemon.process.pid}/statm")
    deadline = time.monotonic() + REST_SECONDS
    held = [0.0]
    while time.monotonic() < deadline:
        held.append(int(statm.read_text().split()[1]) * 4096 / MIB)
        if held[-1] <= wanted or (not wanted and len(held) > 25 and held[-1] >= min(held[-24:-1])):
            break
        time.sleep(0.5)
    return held[-1]


ANSWERS: dict[str, Reply] = {
    "a whole answer": Reply(
        content_type="application/json",
        steps=[
            json.dumps(
                {"choices": [{"message": {"role": "assistant", "content": "x" * (31 * MIB)}}]}
            ).encode()
        ],
    ),
    "a wide answer": Reply(
        content_type="application/json", steps=[b'{"choices":[' + b"{}," * 8_000_000 + b"{}]}"]
    ),
    "a long answer": Reply(content_type="application/json", steps=[b'{"a":"' + b"x" * (100 * MIB)]),
    "an error": Reply(
        status=400, content_type="application/json", steps=[b'{"error":"' + b"x" * (32 * MIB) + b'"}']
    ),
    "an event": Reply(steps=[b'data: {"choices":[{"delta":{"content":"' + b"x" * (32 * MIB) + b'"}}]}\n\n']),
    "a wide event": Reply(steps=[b'data: {"a":[' + b"[]," * 300_000 + b"[]]}\n\n"]),
    "many events": Reply(steps=[b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n' * 200_000]),
}


@pytest.mark.parametrize("path", [CHATS[0], "/v1/messages", "/v1/responses"])
def test_no_answer_stops_the_daemon(site: Site, probe: Probe, path: str) -> None:
    for name, answer in ANSWERS.items():
        for is_streamed in (False, True):
            begun = len(probe.samples)
            site.provider.script(answer)
            asked = {"model": "o.m", "max_tokens": 9, "stream": is_streamed, "input": "x"}
            messages = [{"role": "user", "content": MESSAGE_ID}]
            reply = site.daemon.call(
                "POST", path, {**asked, "messages": messages}, {"Authorization": f"Bearer {site.admin}"}
            )
            assert reply[0], name
            probe.note(f"{path}: {name}, {'streamed' if is_streamed else 'whole'}", begun)

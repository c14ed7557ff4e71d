"""The largest bodies that each row of the gateway takes: how large they are, and hostile values for them."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from gatewayctl.wire.endpoint import NoBody
from gatewayctl.wire.routes import ADD_FILE, ENDPOINTS
from gatewayd.http.routes import BASES
from gatewayd.json_decoder import MAX_TEXT_BYTES
from tests.fakes.daemons.bad_input_site import AUTHS, CHATS, RUNTIME, SCIM

MIB = 2**20
SMALL = MIB
BODY = 32 * MIB
"""The limit of requests to models that the site is given."""

TEXT = 64 * MIB
SCIM_BODY = 4 * MIB

WIDE = MAX_TEXT_BYTES // 4
"""Bytes of a text that has a character over U+FFFF, and about as many characters."""

LIMITS: dict[str, int] = {
    "/api/v1/chats/new": 32 * MIB,
    "/api/v1/chats/{id}": 32 * MIB,
    "/api/v1/chats/{id}/branch": 32 * MIB,
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
    "/v1/chat": 16 * MIB,
    "/v1/chats/import": 64 * MIB,
    "/v1/collections/{ref}/diff": 64 * MIB,
    "/v1/events/calls/{id}": 16 * MIB,
    "/v1/plugins/{family}/check": 8 * MIB,
    "PUT /v1/plugins/{family}/{id}": 8 * MIB,
    "/v1/tool-servers": 16 * MIB,
    "/v1/state/apply": 16 * MIB,
}
"""Bytes that a path, or one row of it, takes: where that is not `request_body_limit`, for what goes to
models, nor 1 MiB."""

FEW_VALUES = (
    "/api/v1/files/",
    "/api/v1/retrieval/",
    "/api/v1/functions/",
    "/api/v1/tools/",
    "/api/v1/knowledge/{id}/files/",
    "/v1/plugins/",
)
"""Rows that take long texts, and no more values than the small ones."""

MODEL_ROWS = (
    *("/completions", "/responses", "/input_tokens", "/compact", "/embeddings", "/message", "/messages"),
    *("/count_tokens", "/event"),
    *("/completions", "/responses", "/embeddings", "/message", "/messages", "/count_tokens", "/event"),
    *("/images/generations", "/audio/speech", "/moderations", "/rerank", "/messages/batches"),
)
MODEL_ROWS_BELOW = (RUNTIME, "/api/chat/", "/api/v1/events/calls/")

SIGN_OUT = f"{AUTHS}/signout"
PASSWORD = f"{AUTHS}/update/password"

BODILESS = {
    *(f"{base}/responses/{{id}}/cancel" for base in BASES),
    *(f"{base}/batches/{{id}}/cancel" for base in ("/v1", "/openai/v1", "/v1/messages", "/api/v1/messages")),
    "/api/tasks/chat/{chat_id}/stop",
    "/api/tasks/stop/{task_id}",
    "/api/v1/auths/sessions/end_others",
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
    "/api/v1/scim/v2/.search",
    "/api/v1/scim/v2/Bulk",
    "/api/v1/scim/v2/Me",
}
"""Public rows that read no JSON: whatever comes is passed over."""

WRITES = {"POST", "PUT", "PATCH"}

CONTROL: dict[str, type[BaseModel] | None] = {
    str(row): None if row.request is NoBody or row is ADD_FILE else row.request
    for row in ENDPOINTS
    if row.method in WRITES
}
"""What each row of the control socket reads that may have a body; None for those that read no JSON."""


@dataclass(frozen=True)
class BodyRow:
    """A row that takes a body of so many bytes; `fields` has the type of each field that is known."""

    method: str
    path: str
    fields: Mapping[str, str]
    size: int

    @property
    def name(self) -> str:
        """The row as a table has it."""
        return f"{self.method} {self.path}"

    def value(self, kind: str) -> bytes:
        """Return a hostile value, as large as the row takes it."""
        return value_of(kind, self.size, has_few=self.path.startswith(FEW_VALUES))

    @property
    def is_control(self) -> bool:
        """Whether it is a row of the control socket."""
        return self.name in CONTROL


def limit_of(path: str) -> int:
    """Return how many bytes a public row takes; one that is not in the table takes 1 MiB."""
    if path in LIMITS:
        return LIMITS[path]
    if path.startswith(SCIM):
        return SCIM_BODY
    is_for_models = path.startswith(MODEL_ROWS_BELOW) or path.endswith(MODEL_ROWS)
    return BODY if is_for_models else SMALL


def types_of(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return the first type that a schema names for each of its fields."""
    found = {}
    for name, member in schema.get("properties", {}).items():
        ways = [member, *member.get("anyOf", [])]
        found[name] = next((way["type"] for way in ways if "type" in way), "object")
    return found


def public_rows(document: Any) -> list[BodyRow]:
    """Return every row of the API description that takes a body, but for what would end the session."""
    schemas = document["components"]["schemas"]
    rows = []
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            taken = operation.get("requestBody", {}).get("content", {})
            given = taken.get("application/json") or taken.get("application/scim+json")
            if given is None or path == SIGN_OUT:
                continue
            schema = given["schema"]
            known = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
            rows.append(BodyRow(method.upper(), path, types_of(known), limit_of(path)))
    return rows


def control_rows() -> list[BodyRow]:
    """Return every row of the control socket that reads JSON."""
    rows = []
    for name, model in CONTROL.items():
        method, _, path = name.partition(" ")
        if model is not None:
            fields = types_of(model.model_json_schema())
            rows.append(BodyRow(method, path, fields, LIMITS.get(name, LIMITS.get(path, SMALL))))
    return rows


def _text(unit: str, size: int) -> bytes:
    return b'"' + unit.encode() * ((size - 2048) // len(unit.encode())) + b'"'


def _many(unit: bytes, count: int, size: int) -> bytes:
    return b"[" + (unit + b",") * min(count, (size - 2048) // (len(unit) + 1)) + unit + b"]"


KINDS: dict[str, Callable[[int, int], bytes]] = {
    "text": lambda size, _: _text("x", size),
    "multi-byte": lambda size, _: _text("\u6f22\U0001f600", min(size, 3 * WIDE)),
    "one wide": lambda size, _: _text("x", min(size, WIDE))[:-5] + '\U0001f600"'.encode(),
    "escapes": lambda size, _: _text("\\n", size),
    "NULs": lambda size, _: _text("\\u0000", size),
    "integers": lambda size, many: _many(b"7", many, size),
    "floats": lambda size, many: _many(b"-1.2345678901234567e-8", many, size),
    "objects": lambda size, many: _many(b'{"a":{}}', many // 22, size),
    "texts": lambda size, many: _many(b'"xyz"', many, size),
    "names": lambda _, many: b"{" + b",".join(b'"%d":1' % number for number in range(many // 4)) + b"}",
    "one name": lambda _, many: b"{" + b'"k":1,' * (many // 2) + b'"k":1}',
    "depth": lambda _, many: b"[" * 58 + b"]" * 58,
    "lists over the limit": lambda size, _: _many(b"[]", size, size),
}
"""Hostile values for a body of so many bytes that may hold so many values."""

WORST = ("objects", "integers", "names")
AGAIN = ("depth",)
"""What a row gets whose handler has had the worst by another path."""

COSTLY = ("texts", "escapes", "one wide", "NULs", "text", "floats", "multi-byte")
"""One of these goes to the first of the rows that share a handler, and to each that takes little."""

ALL_KINDS = {"/api/v1/chats/new", CHATS[0]}
FAMILY = re.compile(r"^/(?:api/v1|ollama/v1|openai/v1|api|openai|v1|ollama)(?=/)|/\{index\}$")


def kinds_of(rows: Sequence[BodyRow]) -> Iterator[tuple[BodyRow, str]]:
    """Yield each row with the hostile values that it gets."""
    seen: set[tuple[str, bool]] = set()
    for row in rows:
        family = (FAMILY.sub("", row.path), row.is_control)
        chosen = list(AGAIN)
        if row.size <= SMALL:
            chosen = [*WORST, COSTLY[len(seen) % len(COSTLY)]]
        elif family not in seen:
            # All large rows are read by one function, which gets each value from some of them.
            chosen = [WORST[len(seen) % len(WORST)], COSTLY[len(seen) % len(COSTLY)]]
        seen.add(family)
        yield from ((row, kind) for kind in (KINDS if row.path in ALL_KINDS else chosen))


TYPES = {b'"': "string", b"[": "array", b"{": "object"}
FILLING: dict[str, bytes] = {
    "string": b'"a"',
    "array": b"[]",
    "object": b"{}",
    "boolean": b"true",
    "integer": b"1",
    "number": b"1",
}


SCIM_MESSAGE = b'{"schemas":["urn:ietf:params:scim:api:messages:2.0:'
SCIM_RESOURCE = b'{"schemas":["urn:ietf:params:scim:schemas:core:2.0:'
SCIM_SEARCH = SCIM_MESSAGE + b'SearchRequest"],"filter":%b,"attributes":%b}'
SCIM_PATCH = SCIM_MESSAGE + b'PatchOp"],"Operations":%b}'
SCIM_USER = SCIM_RESOURCE + b'User"],"userName":"x@example.org","displayName":%b,"emails":%b}'
SCIM_GROUP = SCIM_RESOURCE + b'Group"],"displayName":%b,"members":%b}'


def value_of(kind: str, size: int, *, has_few: bool = False) -> bytes:
    """Return a hostile value that a body of so many bytes may hold, and of as many values as it may hold."""
    return KINDS[kind](size, 18_000 if size <= SMALL or has_few else 450_000)


def form(row: BodyRow, value: bytes) -> bytes:
    """Return a body in which a value stands where it is most likely looked at."""
    path = row.path
    if path.startswith(SCIM):
        return _scim_form(row, value)
    if path in CHATS or path.endswith(("/messages", "/message", "/chat")):
        messages = value if value.startswith(b"[") else b'[{"role":"user","content":%b}]' % value
        return b'{"model":"o.m","max_tokens":9,"messages":%b}' % messages
    if path.startswith(("/api/v1/chats/new", "/api/v1/chats/{id}")) and "chat" in row.fields:
        return b'{"chat":{"title":"t","history":{"messages":{"m":{"content":%b}}}}}' % value
    if path.endswith("/import"):
        halves = value if 2 * len(value) < row.size else b"[]"
        return b'{"chats":[{"chat":{"params":%b}},{"chat":{"history":{"messages":%b}}}]}' % (value, halves)
    known = {name: kind for name, kind in row.fields.items() if name not in {"model", "folder_id"}}
    known = known or {"input": "string", "prompt": "string"}
    wanted = TYPES.get(value[:1], "")
    chosen = next((name for name, kind in known.items() if kind == wanted), next(iter(known)))
    members = b",".join(
        b'"%b":%b' % (name.encode(), value if name == chosen else FILLING.get(kind, b'"a"'))
        for name, kind in known.items()
    )
    model = b"" if row.is_control else b'"model":"o.m",'
    return b"{%b%b}" % (model, members)


def _scim_form(row: BodyRow, value: bytes) -> bytes:
    text = value if value.startswith(b'"') else b'"a"'
    members = value if value.startswith(b"[") else b"[]"
    if row.path.endswith("/.search"):
        return SCIM_SEARCH % (text, members)
    if row.method == "PATCH":
        change = b'[{"op":"add","path":"displayName","value":%b}]' % text
        return SCIM_PATCH % (change if members == b"[]" else members)
    return (SCIM_USER if "/Users" in row.path else SCIM_GROUP) % (text, members)

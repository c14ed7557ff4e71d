"""Bodies, fields and parameters that cannot be read, against the real daemon: a clear refusal, never a 500.

Each refusal is remembered; at the end its line is looked for in what the daemon printed (`Site.assert_told`).
"""

from collections.abc import Iterator
from typing import Any

import pytest

from gatewayd.http.routes import BASES
from tests.fakes.daemons.bad_input_site import (
    AUTHS,
    BODY_LIMIT,
    CHATS,
    RUNTIME,
    SMALL_LIMIT,
    Site,
    chat,
    dumps,
    opened_site,
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened_site(tmp_path_factory.mktemp("s")) as opened:
        yield opened


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
BODILESS = {
    *(f"{base}/responses/{{id}}/cancel" for base in BASES),
    *(f"{base}/batches/{{id}}/cancel" for base in ("/v1", "/openai/v1", "/v1/messages", "/api/v1/messages")),
    f"{AUTHS}/signout",
    f"{AUTHS}/sessions/end_others",
    "/api/v1/models/model/toggle",
    "/api/v1/groups/id/{id}/users",
    "/api/v1/files/{id}/process",
    "/api/v1/knowledge/{id}/reset",
    "/api/tasks/stop/{task_id}",
    "/api/tasks/chat/{chat_id}/stop",
    "/api/v1/events/ticket",
    "/api/v1/chats/archive/all",
    "/api/v1/chats/unarchive/all",
    "/api/v1/chats/{id}/pin",
    "/api/v1/chats/{id}/archive",
    "/api/v1/chats/{id}/share",
    "/api/v1/chats/{id}/clone/shared",
    "/api/v1/functions/id/{id}/toggle",
    "/api/v1/functions/id/{id}/toggle/global",
}
LISTS = {"/api/v1/knowledge/{id}/files/batch/add"}
"""These rows read an array."""

TEXTS = {
    "/api/v1/files/{id}/data/content/update",
    "/api/v1/knowledge/{id}/files/batch/add",
    "/api/v1/knowledge/{id}/sync/diff",
    "/api/v1/knowledge/{id}/sync/cleanup",
    "/api/v1/retrieval/process/file",
    "/api/v1/retrieval/process/text",
    "/api/v1/retrieval/process/files/batch",
    "/api/v1/chats/new",
    "/api/v1/chats/import",
    "/api/v1/chats/{id}",
    "/api/v1/chats/{id}/branch",
    "/api/v1/chats/{id}/messages/{message_id}",
    "/api/v1/functions/sync",
    "/api/v1/functions/create",
    "/api/v1/functions/id/{id}/update",
    "/api/v1/tools/create",
    "/api/v1/tools/id/{id}/update",
    "/api/v1/configs/tool_servers",
    "/api/v1/configs/tool_servers/verify",
}
"""These rows take whole texts, trees and chats: megabytes, too much to send each of them here."""

LARGE = (
    *("/completions", "/responses", "/input_tokens", "/compact", "/embeddings", "/message", "/messages"),
    *("/count_tokens", "/event"),
    *("/images/generations", "/audio/speech", "/moderations", "/rerank", "/messages/batches"),
)
LARGE_BELOW = (RUNTIME, "/api/chat/", "/api/v1/events/")


def limit_of(path: str) -> int:
    """Return how many bytes a row takes."""
    return BODY_LIMIT if path.startswith(LARGE_BELOW) or path.endswith(LARGE) else SMALL_LIMIT


def post_rows(site: Site) -> list[tuple[str, list[str]]]:
    """Return path template and known field names of every POST row that takes JSON, as is described."""
    document = site.described()
    schemas = document["components"]["schemas"]
    rows = []
    for path, operations in document["paths"].items():
        taken = operations.get("post", {}).get("requestBody", {}).get("content", {})
        if "application/json" in taken:
            schema = taken["application/json"]["schema"]
            known = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
            rows.append((path, list(known.get("properties", {}))))
    return rows


def test_there_are_rows(site: Site) -> None:
    rows = [path for path, _ in post_rows(site)]
    assert len(rows) > 25
    assert set(rows) >= BODILESS | set(CHATS)


@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in UNREADABLE.items()])
def test_every_post_refuses_what_it_cannot_read(site: Site, body: bytes) -> None:
    for path, _ in post_rows(site):
        if path in BODILESS or (path in LISTS and body == b"[]"):
            continue
        reply = site.send("POST", site.filled(path), body)
        assert 400 <= reply.status < 500, (path, reply)
        assert reply.status in {400, 422}, (path, reply)


def test_every_post_answers_no_body_and_an_empty_object(site: Site) -> None:
    for path, _ in post_rows(site):
        if path == f"{AUTHS}/signout":
            continue
        site.send("POST", site.filled(path))
        site.send("POST", site.filled(path), b"{}")
    for path in CHATS:
        assert site.send("POST", path).status == 400
        refused = site.send("POST", path, b"{}")
        assert (refused.status, refused.json["error"]["param"]) == (400, "model")


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "x", "gzip, identity"])
def test_every_post_refuses_a_compressed_body(site: Site, coding: str) -> None:
    for path, _ in post_rows(site):
        if path not in BODILESS:
            reply = site.send("POST", site.filled(path), b"{}", {"Content-Encoding": coding})
            assert reply.status == 415, (path, reply)


def test_every_post_refuses_a_body_over_its_limit(site: Site) -> None:
    for path, _ in post_rows(site):
        if path in BODILESS | TEXTS:
            continue
        limit = limit_of(path)
        reply = site.send("POST", site.filled(path), b'{"a": "' + b"a" * limit + b'"}')
        assert reply.status == 413, (path, reply)
        pieces = [b'{"a": "', *[b"a" * 65536] * (limit // 65536), b'"}']
        reply = site.send("POST", site.filled(path), pieces)
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
            site.send("POST", site.filled(path), dumps(dict.fromkeys(names, value)))
        for name in names:
            for value in ([], {}, 5, 2**63, "\x00", None):
                complete = {**dict.fromkeys(names, "x"), name: value}
                site.send("POST", site.filled(path), dumps(complete))
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

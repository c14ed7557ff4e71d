"""Bad fields in each dialect against the real daemon: refused in its shape, by name, never a 500.

Each refusal is remembered; at the end its line is looked for in what the daemon printed (`Site.assert_told`).
"""

from collections.abc import Iterator
from typing import Any

import pytest

from gatewayd.http.routes import BASES
from tests.fakes.daemons.bad_input_site import BODY_LIMIT, MESSAGES, Site, dumps, opened_site

TURNS = [{"role": "user", "content": "hi"}]
SOURCES = ("o.m", "a.m", "l.m")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened_site(tmp_path_factory.mktemp("s")) as opened:
        yield opened


def message(**fields: Any) -> dict[str, Any]:
    return {"model": "o.m", "max_tokens": 5, "messages": TURNS, **fields}


def said(*blocks: Any, role: str = "user") -> dict[str, Any]:
    return message(messages=[{"role": role, "content": list(blocks)}])


WRONG: list[Any] = [
    None, True, 0, -1, 2**63, 10**30, 1.5, 1e308, "", "x", "\x00", "\r\nX: y", "é\u2028🙂", [], [1], ["x"],
    [None], [[]], [{}], {}, {"a": 1}, {"type": []}, {"type": "x"}, "a" * 70_000,
]  # fmt: skip
MESSAGE_FIELDS = (
    "model", "max_tokens", "messages", "system", "stream", "tools", "tool_choice", "temperature", "top_p",
    "top_k", "stop_sequences", "thinking", "metadata", "service_tier", "betas", "output_config",
    "output_format", "cache_control", "mcp_servers", "container", "context_management", "anthropic_version",
    "event", "unknown",
)  # fmt: skip
BLOCKS: dict[str, dict[str, Any]] = {
    "text": {"text": "x"},
    "image": {"source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
    "document": {"source": {"type": "text", "media_type": "text/plain", "data": "x"}},
    "tool_use": {"id": "t", "name": "f", "input": {}},
    "tool_result": {"tool_use_id": "t", "content": "x"},
    "thinking": {"thinking": "x", "signature": "s"},
    "search_result": {"source": "s", "title": "t", "content": [{"type": "text", "text": "x"}]},
}
BLOCK_FIELDS = ("is_error", "cache_control", "citations", "title", "context")


@pytest.mark.parametrize("model", SOURCES)
def test_every_field_of_a_message_request_may_have_any_type(site: Site, model: str) -> None:
    for name in MESSAGE_FIELDS:
        for value in WRONG:
            body = dumps(message(**{"model": model, name: value}))
            site.send("POST", MESSAGES[0], body, token=site.key)
            if model == SOURCES[0]:
                site.send("POST", f"{MESSAGES[0]}/count_tokens", body, token=site.key)
    assert site.send("POST", MESSAGES[0], dumps(message(model=model))).status == 200


@pytest.mark.parametrize("model", SOURCES)
@pytest.mark.parametrize("kind", BLOCKS)
def test_every_field_of_a_block_may_have_any_type(site: Site, kind: str, model: str) -> None:
    role = "assistant" if kind in {"tool_use", "thinking"} else "user"
    for name in ("type", *BLOCKS[kind], *BLOCK_FIELDS):
        for value in WRONG[:-1]:
            block = {"type": kind, **BLOCKS[kind], name: value}
            body = {**said(block, role=role), "model": model}
            site.send("POST", MESSAGES[0], dumps(body))
            if model == SOURCES[0]:
                site.send("POST", f"{MESSAGES[0]}/count_tokens", dumps(body))


@pytest.mark.parametrize("model", SOURCES)
def test_every_field_of_a_tool_may_have_any_type(site: Site, model: str) -> None:
    tool = {"name": "f", "description": "d", "input_schema": {"type": "object"}}
    for value in WRONG[:-1]:
        for name in (*tool, "type", "strict", "cache_control"):
            site.send("POST", MESSAGES[0], dumps(message(model=model, tools=[{**tool, name: value}])))
        for name in ("type", "name", "disable_parallel_tool_use"):
            choice = {"type": "tool", "name": "f", name: value}
            site.send("POST", MESSAGES[0], dumps(message(model=model, tools=[tool], tool_choice=choice)))


DEEP: Any = {}
for _ in range(70):
    DEEP = {"a": DEEP}

BAD_MESSAGES: dict[str, tuple[Any, str]] = {
    "nothing": ({}, "model"),
    "a model of another type": (message(model=5), "model"),
    "an empty model": (message(model=""), "model"),
    "no messages": ({"model": "o.m", "max_tokens": 5}, "messages"),
    "empty messages": (message(messages=[]), "messages"),
    "messages as text": (message(messages="x"), "messages"),
    "a message as text": (message(messages=["x"]), "messages[0]"),
    "a message without content": (message(messages=[{"role": "user"}]), "messages[0].content"),
    "an unknown role": (message(messages=[{"role": "king", "content": "x"}]), "messages[0].role"),
    "a second bad message": (message(messages=[*TURNS, {"role": 5, "content": "x"}]), "messages[1].role"),
    "no max_tokens": ({"model": "o.m", "messages": TURNS}, "max_tokens"),
    "max_tokens 0": (message(max_tokens=0), "max_tokens"),
    "max_tokens as text": (message(max_tokens="5"), "max_tokens"),
    "max_tokens true": (message(max_tokens=True), "max_tokens"),
    "max_tokens 1.5": (message(max_tokens=1.5), "max_tokens"),
    "stream as text": (message(stream="yes"), "stream"),
    "system as number": (message(system=5), "system"),
    "a system part as number": (message(system=[5]), "system[0]"),
    "temperature as text": (message(temperature="hot"), "temperature"),
    "stop_sequences as text": (message(stop_sequences="x"), "stop_sequences"),
    "a stop sequence as number": (message(stop_sequences=["x", 5]), "stop_sequences"),
    "tools as object": (message(tools={}), "tools"),
    "a tool as text": (message(tools=["x"]), "tools[0]"),
    "a tool without a name": (message(tools=[{"input_schema": {"type": "object"}}]), "tools[0].name"),
    "an unknown tool choice": (
        message(tools=[{"name": "f", "input_schema": {"type": "object"}}], tool_choice={"type": "x"}),
        "tool_choice",
    ),
    "an unknown block": (said({"type": "hologram"}), "messages[0].content[0]"),
    "a block as number": (said(5), "messages[0].content[0]"),
    "a block without a type": (said({"text": "x"}), "messages[0].content[0]"),
    "a text that is none": (said({"type": "text", "text": 5}), "messages[0].content[0].text"),
    "an image without a source": (said({"type": "image"}), "messages[0].content[0].source"),
    "an image of an unknown source": (
        said({"type": "image", "source": {"type": "x"}}),
        "messages[0].content[0].source",
    ),
    "a result without an id": (
        said({"type": "tool_result", "content": "x"}),
        "messages[0].content[0].tool_use_id",
    ),
    "a use without a name": (
        said({"type": "tool_use", "id": "t", "input": {}}, role="assistant"),
        "messages[0].content[0].name",
    ),
    "thinking as text": (message(thinking="on"), "thinking"),
    "metadata as text": (message(metadata="me"), "metadata"),
}


@pytest.mark.parametrize(("body", "name"), BAD_MESSAGES.values(), ids=BAD_MESSAGES)
def test_a_bad_field_of_a_message_request_is_named(site: Site, body: Any, name: str) -> None:
    for path in MESSAGES:
        reply = site.send("POST", path, dumps(body))
        assert (reply.status, reply.json["error"]["type"]) == (400, "invalid_request_error"), reply
        assert name in reply.json["error"]["message"], reply


UNREADABLE: dict[str, bytes] = {
    "truncated": b'{"model": "o.m", "messages": [{"role": "us',
    "an array": b"[]",
    "nothing": b"",
    "blanks": b" \n ",
    "NaN": b'{"model": "o.m", "temperature": NaN}',
    "a lone surrogate": b'{"model": "o.m", "messages": [{"role": "user", "content": "\\ud800"}]}',
    "invalid UTF-8": b'{"model": "o.m\xff"}',
    "a huge integer": b'{"model": "o.m", "max_tokens": ' + b"9" * 400 + b"}",
    "too deep": dumps({"model": "o.m", "x": DEEP}),
    "a byte order mark": b"\xef\xbb\xbf" + dumps(message()),
    "UTF-16": '{"model": "o.m"}'.encode("utf-16"),
    "a NUL at its end": dumps(message()) + b"\x00",
    "two objects": dumps(message()) * 2,
}
RUNTIME_PATHS = tuple(f"/ollama/api/{name}" for name in ("chat", "generate", "embed", "embeddings", "show"))
ADMIN_PATHS = tuple(f"/ollama/api/{name}" for name in ("pull", "push", "create", "copy", "unload"))
EMBEDDINGS = tuple(f"{base}/embeddings" for base in BASES)
FORWARDED = tuple(f"{base}{path}" for base in BASES for path in ("/completions", "/responses"))
COUNTS = tuple(f"{path}/count_tokens" for path in MESSAGES)
ALL = (*MESSAGES, *COUNTS, *RUNTIME_PATHS, *ADMIN_PATHS, *EMBEDDINGS, *FORWARDED)


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_refused_in_each_dialect(site: Site, body: bytes) -> None:
    for path in ALL:
        reply = site.send("POST", path, body)
        assert reply.status == 400, (path, reply)
        assert "body" in reply.json["detail"], (path, reply)
        assert len(reply.body) < 2048


def test_a_body_over_the_limit_is_refused_in_each_dialect(site: Site) -> None:
    body = dumps({"model": "o.m", "x": "a" * (2 * 1024 * 1024)})
    assert len(body) > BODY_LIMIT
    for path in ALL:
        reply = site.send("POST", path, body)
        assert reply.status == 413, (path, reply)
        if path in MESSAGES:
            assert reply.json["error"]["type"] == "request_too_large"


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "deflate, gzip"])
def test_a_compressed_body_is_refused_in_each_dialect(site: Site, coding: str) -> None:
    for path in ALL:
        reply = site.send("POST", path, b"{}", {"Content-Encoding": coding})
        assert reply.status == 415, (path, reply)


@pytest.mark.parametrize("sent", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_the_runtimes_api_takes_json_alone(site: Site, sent: str) -> None:
    """A form of another site, which a browser sends without asking, never gets through."""
    for path in (*RUNTIME_PATHS, *ADMIN_PATHS):
        reply = site.send("POST", path, dumps({"model": "l.m"}), {"Content-Type": sent})
        assert reply.status == 415, (path, reply)
        assert sent in reply.json["error"]


BAD_EMBEDDINGS: dict[str, tuple[Any, str]] = {
    "nothing": ({}, "model"),
    "a model of another type": ({"model": [], "input": "x"}, "model"),
    "no input": ({"model": "o.m"}, "input"),
    "null": ({"model": "o.m", "input": None}, "input"),
    "a number": ({"model": "o.m", "input": 5}, "input"),
    "an object": ({"model": "o.m", "input": {}}, "input"),
    "an empty list": ({"model": "o.m", "input": []}, "input"),
    "an empty text": ({"model": "o.m", "input": ""}, "input"),
    "an empty text in a list": ({"model": "o.m", "input": ["x", ""]}, "input"),
    "a list of booleans": ({"model": "o.m", "input": [True]}, "input"),
    "texts and numbers": ({"model": "o.m", "input": ["x", 5]}, "input"),
    "negative tokens": ({"model": "o.m", "input": [-5]}, "input"),
    "an unknown format": ({"model": "o.m", "input": "x", "encoding_format": "hex"}, "encoding_format"),
    "a format of another type": ({"model": "o.m", "input": "x", "encoding_format": 5}, "encoding_format"),
    "dimensions as text": ({"model": "o.m", "input": "x", "dimensions": "5"}, "dimensions"),
    "no dimensions": ({"model": "o.m", "input": "x", "dimensions": 0}, "dimensions"),
}


@pytest.mark.parametrize(("body", "name"), BAD_EMBEDDINGS.values(), ids=BAD_EMBEDDINGS)
def test_a_bad_field_of_an_embeddings_request_is_named(site: Site, body: Any, name: str) -> None:
    for path in EMBEDDINGS:
        reply = site.send("POST", path, dumps(body))
        assert (reply.status, reply.json["error"]["type"]) == (400, "invalid_request_error"), reply
        assert (reply.json["error"]["param"] or "").startswith(name), reply
        assert name in reply.json["error"]["message"], reply


def test_every_field_of_an_embeddings_request_may_have_any_type(site: Site) -> None:
    for model in SOURCES:
        for name in (
            "model",
            "input",
            "encoding_format",
            "dimensions",
            "user",
            "truncate",
            "options",
            "event",
        ):
            for value in WRONG:
                body = {"model": model, "input": "x", name: value}
                site.send("POST", EMBEDDINGS[0], dumps(body))
    assert site.send("POST", EMBEDDINGS[0], dumps({"model": "o.m", "input": "x"})).status == 200


@pytest.mark.parametrize("path", FORWARDED)
def test_a_forwarded_request_needs_a_model(site: Site, path: str) -> None:
    for body in ({}, {"model": None}, {"model": 5}, {"model": ""}, {"model": ["o.m"]}):
        reply = site.send("POST", path, dumps(body))
        assert (reply.status, reply.json["error"]["param"]) == (400, "model"), reply


BAD_RUNTIME: dict[str, tuple[str, Any, str]] = {
    "no model": ("chat", {"messages": TURNS}, "model"),
    "a model of another type": ("chat", {"model": ["o.m"], "messages": TURNS}, "model"),
    "messages as text": ("chat", {"model": "o.m", "messages": "x"}, "messages"),
    "a message as text": ("chat", {"model": "o.m", "messages": ["x"]}, "messages[0]"),
    "an unknown role": ("chat", {"model": "o.m", "messages": [{"role": "king"}]}, "messages[0].role"),
    "images as text": (
        "chat",
        {"model": "o.m", "messages": [{"role": "user", "content": "x", "images": "x"}]},
        "messages[0].images",
    ),
    "an image that is none": (
        "chat",
        {"model": "o.m", "messages": [{"role": "user", "content": "x", "images": ["%%%"]}]},
        "messages[0].images[0]",
    ),
    "stream as text": ("chat", {"model": "o.m", "messages": TURNS, "stream": "no"}, "stream"),
    "format as number": ("chat", {"model": "o.m", "messages": TURNS, "format": 5}, "format"),
    "think as number": ("chat", {"model": "o.m", "messages": TURNS, "think": 5}, "think"),
    "options as list": ("chat", {"model": "o.m", "messages": TURNS, "options": []}, "options"),
    "a temperature as text": (
        "chat",
        {"model": "o.m", "messages": TURNS, "options": {"temperature": "hot"}},
        "options.temperature",
    ),
    "tools as text": ("chat", {"model": "o.m", "messages": TURNS, "tools": "x"}, "tools"),
    "a prompt as list": ("generate", {"model": "o.m", "prompt": ["x"]}, "prompt"),
    "raw": ("generate", {"model": "o.m", "prompt": "x", "raw": True}, "raw"),
    "a suffix": ("generate", {"model": "o.m", "prompt": "x", "suffix": "y"}, "suffix"),
    "input as number": ("embed", {"model": "o.m", "input": 5}, "input"),
    "tokens": ("embed", {"model": "o.m", "input": [5]}, "input"),
    "a prompt as number": ("embeddings", {"model": "o.m", "prompt": 5}, "prompt"),
    "nothing to show": ("show", {}, "model"),
    "nothing to pull": ("pull", {}, "model"),
    "nothing to push": ("push", {"model": ""}, "model"),
    "nothing to make": ("create", {"from": "l.m"}, "model"),
    "no source of a copy": ("copy", {"destination": "l.x"}, "source"),
    "no destination of a copy": ("copy", {"source": "l.m"}, "destination"),
    "nothing to unload": ("unload", {"name": 5}, "name"),
}


@pytest.mark.parametrize(("place", "body", "name"), BAD_RUNTIME.values(), ids=BAD_RUNTIME)
def test_a_bad_field_of_a_runtime_s_request_is_named(site: Site, place: str, body: Any, name: str) -> None:
    reply = site.send("POST", f"/ollama/api/{place}", dumps(body))
    assert reply.status == 400, reply
    assert name in reply.json["error"], reply


RUNTIME_FIELDS = (
    "model", "name", "messages", "prompt", "input", "system", "stream", "format", "options", "keep_alive",
    "think", "tools", "images", "suffix", "raw", "template", "context", "logprobs", "top_logprobs",
    "dimensions", "truncate", "insecure", "from", "files", "source", "destination", "verbose", "Model",
    "NAME",
)  # fmt: skip


@pytest.mark.parametrize(
    ("path", "model"),
    [
        *((path, model) for path in RUNTIME_PATHS for model in SOURCES),
        *((path, "l.m") for path in ADMIN_PATHS),
    ],
)
def test_every_field_of_a_runtime_s_request_may_have_any_type(site: Site, path: str, model: str) -> None:
    for name in RUNTIME_FIELDS:
        for value in WRONG[::2] if path in ADMIN_PATHS else WRONG[:-1]:
            body = {
                "model": model,
                "messages": TURNS,
                "prompt": "x",
                "input": "x",
                "stream": False,
                name: value,
            }
            site.send("POST", path, dumps(body))
    assert site.is_well()

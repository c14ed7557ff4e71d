"""What stands in a request of the messages dialect, by its row in gatewayd-dialects(7)."""

from typing import Any, Final

from tests.fakes.providers.fields import (
    CACHED,
    HI,
    LINK,
    PNG,
    SCHEMA,
    TEXT,
    Json,
    Sample,
    deep,
    field,
    first,
    part,
    said,
    turn,
    turns,
)

USE: Final = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
IMAGE: Final = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
PLAIN: Final = {"type": "text", "media_type": "text/plain", "data": "d"}
PDF: Final = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
TOOL: Final = {"name": "f", "description": "d", "input_schema": SCHEMA}
TOOLS: Final = {"tools": [TOOL, {**TOOL, "name": "g"}]}
FOREIGN_TOOL: Final = {"type": "web_search_20250305", "name": "web_search"}


def _image(**source: str) -> Sample:
    return part({"type": "image", "source": source})


def _document(source: Json, **fields: Any) -> Json:
    return {"type": "document", "source": source, **fields}


def _tool(**fields: Any) -> Json:
    return {"tools": [{**TOOL, **fields}]}


def _used(use: Json, *results: Json) -> Json:
    last = [{"role": "user", "content": list(results)}] if results else []
    return turns(HI, {"role": "assistant", "content": [use]}, *last)


def _result(**fields: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": "t1", "content": "r", **fields}


def _answered(**fields: Any) -> Sample:
    return deep(_used(USE, _result(**fields)), _used(USE, _result()), **fields)


BASE: Final = {**turns(HI), "max_tokens": 9}

MESSAGES: Final[dict[str, Sample]] = {
    "system": field(system="s"),
    "system with cache_control": field(system=[{**TEXT, "cache_control": CACHED}]),
    "role user": turn(HI, {"role": "assistant", "content": "yes"}),
    "role assistant": turn({"role": "assistant", "content": "yes"}),
    "role system": first({"role": "system", "content": "s"}),
    "any other role": first({"role": "developer", "content": "s"}),
    "text": part({"type": "text", "text": "y"}),
    "image, base64": part(IMAGE),
    "image, url": _image(type="url", url=LINK),
    "image, file": _image(type="file", file_id="f"),
    "document, text": part(_document(PLAIN)),
    "document, content": part(_document({"type": "content", "content": [TEXT]})),
    "document, base64": part(_document(PDF)),
    "document, url": part(_document({"type": "url", "url": LINK})),
    "document, file": part(_document({"type": "file", "file_id": "f"})),
    "citations of a document": deep(
        turns({"role": "user", "content": [_document(PLAIN, citations={"enabled": True})]}),
        turns({"role": "user", "content": [_document(PLAIN)]}),
        citations={"enabled": True},
    ),
    "search_result": part({"type": "search_result", "title": "t", "source": "s", "content": [TEXT]}),
    "tool_use": deep(_used(USE), turns(HI, {"role": "assistant", "content": []}), **USE),
    "tool_result": deep(_used(USE, _result()), _used(USE), **_result()),
    "is_error of tool_result": _answered(is_error=True),
    "images in tool_result": _answered(content=[IMAGE]),
    "thinking with a signature": said({"type": "thinking", "thinking": "t", "signature": "s"}),
    "thinking without a signature": said({"type": "thinking", "thinking": "t"}),
    "redacted_thinking": said({"type": "redacted_thinking", "data": "x"}),
    "server_tool_use": said({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
    "mcp_tool_use": said({"type": "mcp_tool_use", "id": "s", "name": "n", "server_name": "m", "input": {}}),
    "blocks ending in _tool_result": said(
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    ),
    "container_upload": part({"type": "container_upload", "file_id": "f"}),
    "tool_reference": part({"type": "tool_reference", "tool_name": "f"}),
    "browser_state": part({"type": "browser_state"}),
    "compaction": said({"type": "compaction", "content": "c"}),
    "fallback": said({"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}),
    "mcp_tool_listing": said({"type": "mcp_tool_listing", "server_name": "s", "tools": []}),
    "tool_addition": part({"type": "tool_addition", "tools": []}),
    "tool_removal": part({"type": "tool_removal", "names": ["f"]}),
    "mid_conv_system": part({"type": "mid_conv_system", "content": [TEXT]}),
    "any other block": part({"type": "video", "source": {}}),
    "cache_control of a block": deep(
        turns({"role": "user", "content": [{**TEXT, "cache_control": CACHED}, TEXT]}),
        turns({"role": "user", "content": [TEXT, TEXT]}),
        cache_control=CACHED,
    ),
    "cache_control of tool_use": deep(
        _used({**USE, "cache_control": CACHED}), _used(USE), cache_control=CACHED
    ),
}

FIELDS: Final[dict[str, Sample]] = {
    "max_tokens": field(max_tokens=5),
    "max_tokens below 1": field(max_tokens=0),
    "temperature": field(temperature=0.5),
    "top_p": field(top_p=0.5),
    "top_k": field(top_k=5),
    "stop_sequences": field(stop_sequences=["x"]),
    "stream": field(stream=True),
    "thinking enabled": field(thinking={"type": "enabled", "budget_tokens": 1024}),
    "thinking disabled or adaptive": field(thinking={"type": "adaptive"}),
    "output_config.effort": field(output_config={"effort": "low"}),
    "output_config.format": field(output_config={"format": {"type": "json_schema", "schema": SCHEMA}}),
    "output_format": field(output_format={"type": "json_schema", "schema": SCHEMA}),
    "reasoning_effort": field(reasoning_effort="low"),
    "tools, custom": field(tools=[TOOL]),
    "strict of a tool": deep(_tool(strict=True), _tool(), strict=True),
    "cache_control of a tool": deep(_tool(cache_control=CACHED), _tool(), cache_control=CACHED),
    "tools of other types": deep({"tools": [TOOL, FOREIGN_TOOL]}, _tool(), **FOREIGN_TOOL),
    "tool_choice auto": field(TOOLS, tool_choice={"type": "auto"}),
    "tool_choice any": field(TOOLS, tool_choice={"type": "any"}),
    "tool_choice tool": field(TOOLS, tool_choice={"type": "tool", "name": "f"}),
    "tool_choice none": field(TOOLS, tool_choice={"type": "none"}),
    "disable_parallel_tool_use": deep(
        {**TOOLS, "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        {**TOOLS, "tool_choice": {"type": "auto"}},
        disable_parallel_tool_use=True,
    ),
    "metadata.user_id": field(metadata={"user_id": "u"}),
    "metadata, other keys": field(metadata={"k": "v"}),
    "service_tier": field(service_tier="auto"),
    "cache_control of the request": field(cache_control=CACHED),
    "betas": field(betas=["b"]),
    "anthropic_beta": field(anthropic_beta=["b"]),
    "anthropic_version": field(anthropic_version="2023-06-01"),
    "context_management": field(context_management={"edits": []}),
    "mcp_servers": field(mcp_servers=[]),
    "any other field": field(container="c"),
    "own fields of the gateway": field(chat_id="c", session_id="s", features={}),
}

"""Converts the turns of a messages request to OpenAI messages; pure.

Blocks without an OpenAI counterpart (a document by URL, or a file stored at the provider) stay unchanged;
`dialect.without_foreign` refuses them for providers that cannot read them.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

from gatewayd.completions.json_access import as_text
from gatewayd.completions.reasoning_history import ORIGIN_FIELD
from gatewayd.completions.reasoning_marks import is_signed, marked_origin
from gatewayd.completions.records import Body
from gatewayd.errors import GatewayError, invalid

SERVER_BLOCKS: Final = frozenset(
    {
        *("server_tool_use", "mcp_tool_use", "container_upload", "tool_reference", "browser_state"),
        *("compaction", "fallback", "mcp_tool_listing", "tool_addition", "tool_removal"),
    }
)
"""Blocks of tools that the provider runs, and of changes that it makes; so are all blocks whose type ends in
`_tool_result`."""

_RESULT_MEDIA: Final = "Returned by tool call {}:"


class OmittedFields:
    """Fields of a request that the OpenAI format cannot express."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    def add(self, name: str) -> None:
        """Record a field or a kind of block."""
        self._names[name] = None

    def sentences(self) -> list[str]:
        """Return a warning for the caller; an empty list if nothing was omitted."""
        if not self._names:
            return []
        names = ", ".join(self._names)
        return [f"cannot convert {names}: only a provider that speaks the messages protocol gets it"]


def check_turns(messages: Any) -> None:
    """Raise invalid_request unless the messages are a list that is not empty."""
    if not isinstance(messages, list):
        raise invalid("cannot accept messages: expected a list", param="messages")
    if not messages:
        raise invalid("cannot accept messages: the list is empty", param="messages")


def to_messages(messages: Any, omitted: OmittedFields) -> list[Body]:
    """Return the OpenAI messages; raise invalid_request with the name of a bad field."""
    check_turns(messages)
    converted: list[Body] = []
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if not isinstance(message, dict):
            raise invalid(f"cannot accept {where}: expected an object", param=where)
        content = f"{where}.content"
        match message.get("role"):
            case "user":
                converted += _user(message.get("content"), content, omitted)
            case "assistant":
                converted.append(_assistant(message.get("content"), content, omitted))
            case "system":
                converted += system_messages(message.get("content"), content)
            case _:
                name = f"{where}.role"
                raise invalid(f"cannot accept {name}: expected user or assistant", param=name)
    return converted


def system_messages(system: Any, where: str) -> list[Body]:
    """Return the system message of a text or a list of text blocks; an empty list for empty text.

    The blocks are joined by newlines, but stay separate parts if one of them has `cache_control`.
    """
    if system is None and where == "system":
        return []
    parts = []
    for block, name in _blocks(system, where):
        if block["type"] != "text":
            raise invalid(f"cannot accept {name}.type: a system prompt holds text only", param=f"{name}.type")
        parts += _text(block, name)
    if not parts:
        return []
    if any("cache_control" in part for part in parts):
        return [{"role": "system", "content": parts}]
    return [{"role": "system", "content": "\n".join(part["text"] for part in parts)}]


def _user(content: Any, where: str, omitted: OmittedFields) -> list[Body]:
    """Return the tool results of a turn, which answer the previous calls, then the rest of the turn."""
    results: list[Body] = []
    media: list[Body] = []
    parts: list[Body] = []
    for block, name in _blocks(content, where):
        if block["type"] == "tool_result":
            result, result_media = _tool_result(block, name, omitted)
            results.append(result)
            media += result_media
        else:
            parts += _parts(block, name, omitted)
    rest = media + parts
    if results and not rest:
        return results
    return [*results, {"role": "user", "content": _plain_content(rest)}]


def _assistant(content: Any, where: str, omitted: OmittedFields) -> Body:
    thoughts: list[Body] = []
    calls: list[Body] = []
    parts: list[Body] = []
    for block, name in _blocks(content, where):
        match block["type"]:
            case "thinking":
                _read_text(block, "thinking", name)
                thoughts.append(block)
            case "redacted_thinking":
                _read_text(block, "data", name)
                thoughts.append(block)
            case "tool_use":
                calls.append(_tool_use(block, name))
            case _:
                parts += _parts(block, name, omitted)
    message: Body = {"role": "assistant", "content": _plain_content(parts)}
    if thoughts:
        _add_thoughts(message, thoughts)
    if calls:
        message["tool_calls"] = calls
        message["content"] = message["content"] or None
    return message


def _add_thoughts(message: Body, thoughts: list[Body]) -> None:
    """Add signed thinking as it is, and the text of other makers with the origin that their mark names."""
    signed = [block for block in thoughts if is_signed(block)]
    unsigned = [block for block in thoughts if not is_signed(block)]
    if signed:
        message["thinking_blocks"] = signed
    text = "".join(as_text(block.get("thinking")) for block in unsigned)
    if not text or signed:
        return
    message["reasoning_content"] = text
    origin = next(filter(None, (marked_origin(block.get("signature")) for block in unsigned)), None)
    if origin:
        message[ORIGIN_FIELD] = origin


def _blocks(content: Any, where: str) -> Iterator[tuple[Body, str]]:
    """Yield each block of a content with its field name; each block has a text `type`."""
    if isinstance(content, str):
        content = [content]
    if not isinstance(content, list):
        raise invalid(f"cannot accept {where}: expected text or a list of blocks", param=where)
    for index, block in enumerate(content):
        name = f"{where}[{index}]"
        if isinstance(block, str):
            block = {"type": "text", "text": block}
        if not isinstance(block, dict):
            raise invalid(f"cannot accept {name}: expected an object", param=name)
        _read_text(block, "type", name)
        yield block, name


def _parts(block: Body, where: str, omitted: OmittedFields) -> list[Body]:
    """Convert one block of text, image or document to parts."""
    kind = block["type"]
    if kind == "text":
        return _text(block, where)
    if kind == "image":
        return _image(block, where)
    if kind == "document":
        return _document(block, where, omitted)
    if kind == "search_result":
        return _search_result(block, where, omitted)
    if kind == "mid_conv_system":
        inner = block.get("content", block.get("text"))
        return [part for item, name in _blocks(inner, f"{where}.content") for part in _text(item, name)]
    if kind in SERVER_BLOCKS or kind.endswith("_tool_result"):
        omitted.add(f"{kind} blocks")
        return []
    raise invalid(f"cannot accept {where}.type: {kind!r:.80} is not allowed here", param=f"{where}.type")


def _text(block: Body, where: str) -> list[Body]:
    text = _read_text(block, "text", where)
    return [_with_cache_control({"type": "text", "text": text}, block)] if text else []


def _image(block: Body, where: str) -> list[Body]:
    source = _source(block, where)
    match source.get("type"):
        case "base64":
            url = _data_url(source, f"{where}.source", "image/png")
        case "url":
            url = _read_text(source, "url", f"{where}.source")
        case "file":
            return [block]
        case _:
            raise _unknown_source(where, "base64, url or file")
    return [_with_cache_control({"type": "image_url", "image_url": {"url": url}}, block)]


def _document(block: Body, where: str, omitted: OmittedFields) -> list[Body]:
    parts: list[Body]
    source = _source(block, where)
    title, context = block.get("title"), block.get("context")
    match source.get("type"):
        case "text":
            parts = [{"type": "text", "text": _read_text(source, "data", f"{where}.source")}]
        case "content":
            parts = []
            for inner, name in _blocks(source.get("content"), f"{where}.source.content"):
                parts += _parts(inner, name, omitted)
        case "base64":
            url = _data_url(source, f"{where}.source", "application/pdf")
            file = {"filename": as_text(title) or "document.pdf", "file_data": url}
            parts = [{"type": "file", "file": file}]
        case "url" | "file":
            return [block]
        case _:
            raise _unknown_source(where, "text, content, base64, url or file")
    if block.get("citations"):
        omitted.add("citations of documents")
    head = [("Document", title), ("Context", context)]
    return _headed(head, parts, block)


def _search_result(block: Body, where: str, omitted: OmittedFields) -> list[Body]:
    parts = []
    for inner, name in _blocks(block.get("content"), f"{where}.content"):
        parts += _parts(inner, name, omitted)
    if block.get("citations"):
        omitted.add("citations of documents")
    return _headed([("Search result", block.get("title")), ("Source", block.get("source"))], parts, block)


def _headed(head: Iterable[tuple[str, Any]], parts: list[Body], block: Body) -> list[Body]:
    """Put labelled lines before the parts, inside the first part if it is a text."""
    lines = "".join(f"{label}: {value}\n" for label, value in head if isinstance(value, str) and value)
    if lines and parts and parts[0]["type"] == "text":
        parts[0] = {**parts[0], "text": f"{lines}\n{parts[0]['text']}"}
    elif lines:
        parts = [{"type": "text", "text": lines}, *parts]
    if parts:
        parts[-1] = _with_cache_control(parts[-1], block)
    return parts


def _tool_use(block: Body, where: str) -> Body:
    arguments = block.get("input", {})
    if not isinstance(arguments, dict):
        raise invalid(f"cannot accept {where}.input: expected an object", param=f"{where}.input")
    name = _read_text(block, "name", where)
    function = {"name": name, "arguments": orjson.dumps(arguments).decode()}
    return {"id": _read_text(block, "id", where), "type": "function", "function": function}


def _tool_result(block: Body, where: str, omitted: OmittedFields) -> tuple[Body, list[Body]]:
    """Return the tool message, which holds text only, and the parts of a user message for the media."""
    call_id = _read_text(block, "tool_use_id", where)
    parts = []
    for inner, name in _blocks(block.get("content") or [], f"{where}.content"):
        parts += _parts(inner, name, omitted)
    texts = [part for part in parts if part["type"] == "text"]
    media = [part for part in parts if part["type"] != "text"]
    text = "\n".join(part["text"] for part in texts)
    if media:
        media = [{"type": "text", "text": _RESULT_MEDIA.format(call_id)}, *media]
        text = text or "(see the next message)"
    if block.get("is_error"):
        text = f"Error: {text}"
    content: str | list[Body] = text
    for cached in (block, *reversed(texts)):
        if text and cached.get("cache_control") is not None:
            content = [_with_cache_control({"type": "text", "text": text}, cached)]
            break
    return {"role": "tool", "tool_call_id": call_id, "content": content}, media


def _plain_content(parts: list[Body]) -> str | list[Body]:
    """Return a plain text if the parts are just one text."""
    if not parts:
        return ""
    if len(parts) == 1 and parts[0].keys() == {"type", "text"}:
        return as_text(parts[0]["text"])
    return parts


def _with_cache_control(part: Body, block: Mapping[str, Any]) -> Body:
    if block.get("cache_control") is None:
        return part
    return {**part, "cache_control": block["cache_control"]}


def _source(block: Body, where: str) -> Body:
    source = block.get("source")
    if not isinstance(source, dict):
        raise invalid(f"cannot accept {where}.source: expected an object", param=f"{where}.source")
    return source


def _unknown_source(where: str, known: str) -> GatewayError:
    return invalid(f"cannot accept {where}.source: its type is none of {known}", param=f"{where}.source")


def _data_url(source: Body, where: str, default_type: str) -> str:
    media_type = source.get("media_type")
    if media_type is not None and not isinstance(media_type, str):
        raise invalid(f"cannot accept {where}.media_type: expected text", param=f"{where}.media_type")
    return f"data:{media_type or default_type};base64,{_read_text(source, 'data', where)}"


def _read_text(block: Mapping[str, Any], name: str, where: str) -> str:
    """Return a text field; only ids, names, types and URLs must not be empty."""
    value = block.get(name)
    if not isinstance(value, str):
        raise invalid(f"cannot accept {where}.{name}: expected text", param=f"{where}.{name}")
    if not value and name in {"type", "id", "name", "tool_use_id", "url"}:
        raise invalid(f"cannot accept {where}.{name}: it is empty", param=f"{where}.{name}")
    return value

"""Interpretation of the result of a tool or action: text for the model, pages and files for the user.

See gatewayd-plugins(7), RESULTS. Responses of starlette are recognised by the names of their classes, since
starlette may not be installed.
"""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

HTML: Final = "HTMLResponse"
RESPONSE: Final = "Response"
UI_COMPONENT: Final = "ui_component"

_MCP_TYPES: Final = frozenset({"text", "image", "audio", "resource", "resource_link"})
_MEDIA_TYPES: Final = frozenset({"image", "audio"})
_STATUS_WORDS: Final = {2: "success", 4: "error", 5: "error"}


@dataclass(frozen=True, slots=True)
class ResultMedia:
    """Bytes to store as a file of the user; `type` is `image`, `audio` or `file`."""

    type: str
    content: bytes
    content_type: str


@dataclass(frozen=True, slots=True)
class ServerReply:
    """Reply of a tool server: its JSON or text, and its headers."""

    data: Any
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """An interpreted result: text for the model, HTML or URLs to embed, and files to store.

    With `is_notice` the text is not part of the result: it describes to the model what the user sees.
    """

    text: str
    embeds: tuple[str, ...] = ()
    media: tuple[ResultMedia, ...] = ()
    is_notice: bool = False


def read_result(value: Any, name: str) -> ToolResult:
    """Return the interpreted result; `name` is the name of the tool or action, for sentences."""
    if isinstance(value, ServerReply):
        return _server_reply(value, name)
    if isinstance(value, tuple) and len(value) == 2 and _is_a(value[0], HTML):
        return _page_with_context(value[0], value[1], name)
    if _is_a(value, HTML):
        return _page(value, name)
    if _is_page(value):
        return ToolResult(_embed_notice(name, "success"), (value[0],), is_notice=True)
    if isinstance(value, list):
        return _list(value)
    if isinstance(value, str):
        return _string(value)
    return ToolResult(_text(value))


def is_html(value: Any) -> bool:
    """Whether a result is an HTML page, alone or in a pair with text."""
    return _is_a(value[0] if isinstance(value, tuple) and value else value, HTML)


def is_mcp(value: Any) -> bool:
    """Whether a result is a list of MCP content items."""
    return isinstance(value, list) and bool(value) and all(_is_mcp(item) for item in value)


def _is_page(value: Any) -> bool:
    """Whether a result is `(html, headers)` with the headers of an inline HTML page."""
    if not (isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)):
        return False
    if not isinstance(value[1], Mapping):
        return False
    headers = {str(key).lower(): text for key, text in value[1].items()}
    kind = str(headers.get("content-type", "text/html")).lower()
    return _is_inline(headers) and kind.startswith("text/html")


def _page(page: Any, name: str) -> ToolResult:
    if not _is_inline(page.headers):
        return ToolResult(_body(page))
    word = _STATUS_WORDS.get(page.status_code // 100, "unknown")
    return ToolResult(_embed_notice(name, word), (_body(page),), is_notice=True)


def _page_with_context(page: Any, context: Any, name: str) -> ToolResult:
    read = _page(page, name)
    if read.embeds:
        return ToolResult(_text(context), read.embeds)
    return ToolResult("\n\n".join(part for part in (read.text, _text(context)) if part))


def _server_reply(reply: ServerReply, name: str) -> ToolResult:
    headers = {key.lower(): value for key, value in reply.headers.items()}
    is_page = headers.get("content-type", "").lower().startswith("text/html")
    if _is_inline(headers) and is_page:
        shown = headers.get("location") or _text(reply.data)
        return ToolResult(_embed_notice(name, "success"), (shown,), is_notice=True)
    return read_result(reply.data, name)


def _embed_notice(name: str, word: str) -> str:
    message = f"{name}: the user sees its result as an embedded page"
    return _json({"status": word, "code": UI_COMPONENT, "message": message})


def _is_inline(headers: Any) -> bool:
    disposition = headers.get("content-disposition") or headers.get("Content-Disposition") or ""
    return "inline" in str(disposition).lower()


def _body(response: Any) -> str:
    body = response.body
    return bytes(body).decode("utf-8", "replace") if isinstance(body, bytes | memoryview) else str(body)


def _list(items: Sequence[Any]) -> ToolResult:
    if is_mcp(items):
        return _mcp(items)
    media = [_media_of(item) if isinstance(item, str) else None for item in items]
    found = tuple(item for item in media if item is not None)
    if not found:
        return ToolResult(_text(items))
    rest = [item for item, read in zip(items, media, strict=True) if read is None]
    return ToolResult(_text(rest) if rest else _media_notice(found), media=found, is_notice=not rest)


def _string(value: str) -> ToolResult:
    media = _media_of(value) if value.startswith("data:image/") else None
    if media is None:
        return ToolResult(value)
    return ToolResult(_media_notice((media,)), media=(media,), is_notice=True)


def _is_mcp(item: Any) -> bool:
    if not isinstance(item, dict) or item.get("type") not in _MCP_TYPES:
        return False
    member = {"text": "text", "resource": "resource", "resource_link": "uri"}.get(item["type"], "data")
    return member in item


def _mcp(items: Sequence[Mapping[str, Any]]) -> ToolResult:
    texts: list[str] = []
    media: list[ResultMedia] = []
    for item in items:
        content = _decoded(item["data"]) if item["type"] in _MEDIA_TYPES else None
        if content is not None:
            media.append(ResultMedia(item["type"], content, str(item.get("mimeType") or f"{item['type']}/*")))
        else:
            texts.append(_mcp_text(item))
    return ToolResult(
        "\n".join(texts) if texts else _media_notice(media), media=tuple(media), is_notice=not texts
    )


def _mcp_text(item: Mapping[str, Any]) -> str:
    match item["type"]:
        case "text":
            return _text(item["text"])
        case "resource":
            resource = item["resource"]
            known = resource if isinstance(resource, dict) else {}
            return _text(known.get("text") or known.get("blob") or resource)
        case "resource_link":
            return _text(item["uri"])
        case kind:
            return f"The {kind} of this result cannot be read."


def _media_notice(media: Sequence[ResultMedia]) -> str:
    kinds = ", ".join(item.type for item in media)
    return f"The user sees the result: {kinds}."


def _media_of(text: str) -> ResultMedia | None:
    """Return the media of a base64 `data:` URL; None for any other text."""
    head, comma, data = text.partition(",")
    if not (comma and head.startswith("data:") and head.endswith(";base64")):
        return None
    content = _decoded(data)
    if content is None:
        return None
    content_type = head[5:-7].split(";")[0] or "application/octet-stream"
    kind = content_type.split("/")[0]
    return ResultMedia(kind if kind in _MEDIA_TYPES else "file", content, content_type)


def _decoded(data: Any) -> bytes | None:
    if isinstance(data, bytes):
        return data
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError, TypeError):
        return None


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        return _json(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if _is_a(value, RESPONSE) and hasattr(value, "body"):
        return _body(value)
    return str(value)


def _json(value: Any) -> str:
    """Return JSON; a value that JSON does not have is rendered by `str`."""
    try:
        return json.dumps(value, indent=2, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        return str(value)
    except RecursionError:
        return "The result is nested too deeply to be rendered."


def _is_a(value: Any, name: str) -> bool:
    """Whether a value is an instance of a class with this name, or of a subclass."""
    return any(kind.__name__ == name for kind in type(value).__mro__)

"""Converts the messages of the Ollama dialect to OpenAI messages; pure."""

import base64
import binascii
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from gatewayd.completions.records import Body
from gatewayd.dialects.fields import parse_arguments, parse_data_url, read_list, read_text
from gatewayd.errors import invalid

ROLES: Final = ("system", "user", "assistant", "tool")

_SIGNATURES: Final = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF8", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"BM", "image/bmp"),
    (0, b"II*\x00", "image/tiff"),
    (0, b"MM\x00*", "image/tiff"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftypheic", "image/heic"),
)
"""Offset and signature of image formats."""


@dataclass(slots=True)
class _OpenCall:
    """A tool call that has no result yet."""

    id: str
    name: str
    is_answered: bool = False


class _OpenCalls:
    """Finds the first open call by id, by name, or of all, in constant time."""

    def __init__(self) -> None:
        self._by_id: dict[str, deque[_OpenCall]] = {}
        self._by_name: dict[str, deque[_OpenCall]] = {}
        self._all: deque[_OpenCall] = deque()

    def add(self, call_id: str, name: str) -> None:
        """Record a call."""
        call = _OpenCall(call_id, name)
        self._by_id.setdefault(call_id, deque()).append(call)
        self._by_name.setdefault(name, deque()).append(call)
        self._all.append(call)

    def answer(self, call_id: str, name: str) -> str | None:
        """Close the open call that a result belongs to and return its id; None if there is none."""
        queue: deque[_OpenCall] | None = self._all
        if call_id or name:
            queue = self._by_id.get(call_id) if call_id else self._by_name.get(name)
        while queue:
            call = queue.popleft()
            if not call.is_answered:
                call.is_answered = True
                return call.id
        return None


class ConversationConverter:
    """Converts messages in order; gives tool calls ids, and tool messages the id of their call.

    This dialect matches calls and results by name and order, OpenAI by id. A generated id holds the number of
    the call, so that a conversation has the same ids each time that it is sent.
    """

    def __init__(self, warnings: list[str]) -> None:
        self.messages: list[Body] = []
        self._warnings = warnings
        self._generated_ids = 0
        self._open = _OpenCalls()

    def add(self, message: Any, where: str) -> None:
        """Convert one message; raise invalid_request with the name of a bad field."""
        if not isinstance(message, dict):
            raise invalid(f"cannot read {where}: it is not an object", param=where)
        role = message.get("role")
        if role not in ROLES:
            raise invalid(
                f"cannot read {where}.role: it is none of {', '.join(ROLES)}", param=f"{where}.role"
            )
        text = read_text(message, "content", f"{where}.content")
        converted: Body = {"role": role, "content": with_images(text, message, f"{where}.images")}
        thinking = read_text(message, "thinking", f"{where}.thinking")
        if thinking:
            converted["reasoning_content"] = thinking
        calls = read_list(message, "tool_calls", f"{where}.tool_calls")
        if calls:
            converted["tool_calls"] = [
                self._call(call, f"{where}.tool_calls[{index}]") for index, call in enumerate(calls)
            ]
            converted["content"] = converted["content"] or None
        if role == "tool":
            self._answer(converted, message, where)
        self.messages.append(converted)

    def _call(self, call: Any, where: str) -> Body:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise invalid(f"cannot read {where}: it has no function", param=where)
        name = read_text(function, "name", f"{where}.function.name")
        arguments = parse_arguments(function.get("arguments"), f"{where}.function.arguments")
        own_id = read_text(call, "id", f"{where}.id") or self._new_id()
        self._open.add(own_id, name)
        return {
            "id": own_id,
            "type": "function",
            "function": {"name": name, "arguments": orjson.dumps(arguments).decode()},
        }

    def _answer(self, converted: Body, message: Mapping[str, Any], where: str) -> None:
        name = read_text(message, "tool_name", f"{where}.tool_name") or read_text(
            message, "name", f"{where}.name"
        )
        own_id = read_text(message, "tool_call_id", f"{where}.tool_call_id")
        found = self._open.answer(own_id, name)
        if found is not None:
            converted["tool_call_id"] = found
            return
        if name:
            converted["name"] = name
        converted["tool_call_id"] = own_id or self._new_id()
        self._warnings.append(f"cannot match {where}: it answers no open tool call before it")

    def _new_id(self) -> str:
        """Return an id of nine letters and digits, which every provider accepts."""
        self._generated_ids += 1
        return f"call{self._generated_ids:05}"


def with_images(text: str, holder: Mapping[str, Any], where: str) -> str | list[Body]:
    """Return a text, or its parts if `holder` has `images`; raise invalid_request naming `where`."""
    images = read_list(holder, "images", where)
    if not images:
        return text
    parts: list[Body] = [{"type": "text", "text": text}] if text else []
    return parts + [_image(image, f"{where}[{index}]") for index, image in enumerate(images)]


def _image(image: Any, where: str) -> Body:
    """Return the part for an image in base64 or in a base64 data URL."""
    if not isinstance(image, str):
        raise invalid(f"cannot read {where}: it is not base64 text", param=where)
    if image.startswith(("http://", "https://")):
        raise invalid(f"cannot fetch {where}: an image is sent as base64 text", param=where)
    encoded = parse_data_url(image, where)[1] if image.startswith("data:") else image
    encoded = "".join(encoded.split())
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid(f"cannot read {where}: it is not base64 text", param=where) from error
    for offset, signature, media_type in _SIGNATURES:
        if data.startswith(signature, offset):
            return {"type": "image_url", "image_url": {"url": f"data:{media_type};base64,{encoded}"}}
    raise invalid(f"cannot read {where}: it is no image of a known format", param=where)

"""Local count of the tokens in a messages request; pure.

A tokenizer counts texts, if one is given. Otherwise one token stands for four ASCII characters or for three
UTF-8 bytes of other characters, close to the usual tokenizers for prose. Base64 text and numbers are
underestimated then. The request is read once.
"""

import base64
import binascii
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

TextTokens = Callable[[str], int]
"""Returns the number of tokens of a text."""

ASCII_PER_TOKEN: Final = 4
BYTES_PER_TOKEN: Final = 3
MESSAGE_TOKENS: Final = 4
"""Overhead of a turn."""
TOOL_TOKENS: Final = 8
"""Overhead of a tool."""
IMAGE_TOKENS: Final = 1_600
"""Tokens of an image of unknown size, and the maximum, because larger images are scaled down first."""
PIXELS_PER_TOKEN: Final = 750
DOCUMENT_TOKENS: Final = 1_500
"""Tokens of a PDF page, and of a document of unknown size."""
PAGE_BYTES: Final = 30_000
"""Size of an average PDF page in bytes."""

_HEAD: Final = 4 * 16_384
"""Number of base64 characters that are searched for the size of an image."""


def count_tokens(value: Mapping[str, Any], count: TextTokens | None = None) -> int:
    """Return the count for the `system`, `messages` and `tools` of a request, at least 1; never raises.

    `count` is the tokenizer for texts; without one they are estimated.
    """
    count = count or text_tokens
    tokens = 3 + _walk(value.get("system"), count)
    for name, extra in (("messages", MESSAGE_TOKENS), ("tools", TOOL_TOKENS)):
        items = value.get(name)
        tokens += _walk(items, count)
        if isinstance(items, list):
            tokens += extra * len(items)
    return tokens


def text_tokens(text: str) -> int:
    """Return the estimate for a text, rounded up; 0 for an empty text."""
    if text.isascii():
        return -(-len(text) // ASCII_PER_TOKEN)
    plain = len(text.encode("ascii", "ignore"))
    other = len(text.encode("utf-8", "surrogatepass")) - plain
    return -(-plain // ASCII_PER_TOKEN) + -(-other // BYTES_PER_TOKEN)


def length_tokens(characters: int) -> int:
    """Return the estimate for text of which only the length is known."""
    return -(-characters // ASCII_PER_TOKEN)


def _walk(value: object, count: TextTokens) -> int:
    """Count a JSON value of any depth with an explicit stack instead of recursion."""
    tokens = 0
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            tokens += count(item)
        elif isinstance(item, dict):
            tokens += _object(item, stack, count)
        elif isinstance(item, list):
            stack.extend(item)
        elif item is not None:
            tokens += 1
    return tokens


def _object(item: dict[Any, Any], stack: list[object], count: TextTokens) -> int:
    """Count an object's own tokens; push its values unless they are counted here."""
    source = item.get("source")
    match item.get("type"):
        case "image" if isinstance(source, dict):
            return _image_tokens(source)
        case "document" if isinstance(source, dict) and source.get("type") in ("base64", "url", "file"):
            stack.extend((item.get("title"), item.get("context")))
            return _document_tokens(source)
        case "document" if isinstance(source, dict):
            stack.extend((item.get("title"), item.get("context"), source.get("data"), source.get("content")))
            return 0
        case "text" if isinstance(item.get("text"), str):
            return count(item["text"])
        case "thinking" if isinstance(item.get("thinking"), str):
            return count(item["thinking"])
        case "redacted_thinking":
            return 0
        case _:
            pass
    stack.extend(value for name, value in item.items() if name != "cache_control")
    return len(item)


def _document_tokens(source: Mapping[str, Any]) -> int:
    data = source.get("data")
    size = len(data) * 3 // 4 if isinstance(data, str) else 0
    return DOCUMENT_TOKENS * max(1, -(-size // PAGE_BYTES))


def _image_tokens(source: Mapping[str, Any]) -> int:
    data = source.get("data")
    size = _image_size(data) if isinstance(data, str) else None
    if size is None:
        return IMAGE_TOKENS
    return min(IMAGE_TOKENS, max(1, -(-size[0] * size[1] // PIXELS_PER_TOKEN)))


def _image_size(data: str) -> tuple[int, int] | None:
    """Return width and height in pixels from the header of a PNG, GIF, JPEG or WebP, else None."""
    head = data[:_HEAD]
    try:
        image = base64.b64decode(head[: len(head) // 4 * 4])
    except (binascii.Error, ValueError):
        return None
    if image.startswith(b"\x89PNG\r\n\x1a\n") and len(image) >= 24:
        return struct.unpack(">II", image[16:24])
    if image.startswith((b"GIF87a", b"GIF89a")) and len(image) >= 10:
        return struct.unpack("<HH", image[6:10])
    if image.startswith(b"\xff\xd8"):
        return _jpeg_size(image)
    if image.startswith(b"RIFF") and image[8:12] == b"WEBP" and len(image) >= 30:
        return _webp_size(image)
    return None


def _jpeg_size(image: bytes) -> tuple[int, int] | None:
    """Walk the segments to the frame header, which holds the height before the width."""
    position = 2
    while position + 9 <= len(image) and image[position] == 0xFF:
        marker = image[position + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", image[position + 5 : position + 9])
            return width, height
        (length,) = struct.unpack(">H", image[position + 2 : position + 4])
        position += 2 + length
    return None


def _webp_size(image: bytes) -> tuple[int, int] | None:
    kind = image[12:16]
    if kind == b"VP8X":
        return int.from_bytes(image[24:27], "little") + 1, int.from_bytes(image[27:30], "little") + 1
    if kind == b"VP8L":
        bits = int.from_bytes(image[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = struct.unpack("<HH", image[26:30])
        return width & 0x3FFF, height & 0x3FFF
    return None

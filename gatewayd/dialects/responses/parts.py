"""Converts the content parts of the Responses protocol to those of chat messages; pure."""

from collections.abc import Iterator
from typing import Any, Final

from gatewayd.completions.records import Body
from gatewayd.dialects.responses.fields import optional_object, optional_text, read_text, wrong
from gatewayd.errors import invalid

TEXT_PARTS: Final = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})
MEDIA_PARTS: Final = frozenset({"input_image", "input_file", "input_audio"})

_AUDIO_KEYS: Final = ("data", "format")


def text_of_parts(content: Any, where: str, *, separator: str = "", are_media_allowed: bool = False) -> str:
    """Return the text of a content that may hold text and refusals only, or media that are skipped."""
    if isinstance(content, str):
        return content
    texts = []
    for part, name in _parts(content, where):
        kind = part["type"]
        if kind in TEXT_PARTS:
            texts.append(read_text(part, "text", name))
        elif kind == "refusal":
            texts.append(read_text(part, "refusal", name))
        elif not (are_media_allowed and kind in MEDIA_PARTS):
            raise invalid(
                f"cannot accept {name}.type: {kind!r:.80} is not allowed here", param=f"{name}.type"
            )
    return separator.join(texts)


def media_of(content: Any, where: str, files: list[str]) -> list[Body]:
    """Return the pictures and files of a tool result."""
    return [
        converted
        for part, name in _parts(content, where)
        if part["type"] in MEDIA_PARTS
        for converted in _media(part, name, files)
    ]


def to_parts(content: Any, where: str, files: list[str]) -> str | list[Body]:
    """Return the content of a user message; ids of the gateway's own files are added to `files`."""
    if isinstance(content, str):
        return content
    made: list[Body] = []
    for part, name in _parts(content, where):
        if part["type"] in TEXT_PARTS:
            made.append({"type": "text", "text": read_text(part, "text", name)})
        elif part["type"] in MEDIA_PARTS:
            made += _media(part, name, files)
        else:
            raise invalid(
                f"cannot accept {name}.type: {part['type']!r:.80} is not allowed here", param=f"{name}.type"
            )
    if not made:
        return ""
    return made[0]["text"] if len(made) == 1 and made[0]["type"] == "text" else made


def _parts(content: Any, where: str) -> Iterator[tuple[Body, str]]:
    if not isinstance(content, list):
        raise wrong(where, "text or a list of parts")
    for index, part in enumerate(content):
        name = f"{where}[{index}]"
        if not isinstance(part, dict):
            raise wrong(name, "an object")
        read_text(part, "type", name, is_empty_allowed=False)
        yield part, name


def _media(part: Body, where: str, files: list[str]) -> list[Body]:
    """Return a picture, file or recording; a file of the gateway goes to `files` instead."""
    file_id = optional_text(part, "file_id", where)
    if part["type"] == "input_audio":
        return [{"type": "input_audio", "input_audio": _audio(part, where)}]
    if part["type"] == "input_image":
        url = optional_text(part, "image_url", where)
        if url:
            detail = optional_text(part, "detail", where)
            return [
                {"type": "image_url", "image_url": {"url": url, **({"detail": detail} if detail else {})}}
            ]
    else:
        data = optional_text(part, "file_data", where)
        if data:
            name = optional_text(part, "filename", where)
            return [{"type": "file", "file": {"filename": name or "document.pdf", "file_data": data}}]
        if optional_text(part, "file_url", where):
            path = f"{where}.file_url"
            raise invalid(f"cannot accept {path}: send the file as file_data", param=path)
    if not file_id:
        expected = "image_url" if part["type"] == "input_image" else "file_data"
        raise wrong(f"{where}.{expected}", "text")
    files.append(file_id)
    return []


def _audio(part: Body, where: str) -> Body:
    held = optional_object(part, "input_audio", where)
    path = f"{where}.input_audio" if held else where
    return {name: read_text(held or part, name, path) for name in _AUDIO_KEYS}

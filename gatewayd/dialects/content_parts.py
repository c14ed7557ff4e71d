"""Reads the contents of chat messages for protocols whose text parts are `{"text": ...}`; pure."""

from collections.abc import Callable, Mapping
from typing import Any

from gatewayd.completions.json_access import as_mapping
from gatewayd.completions.records import Body
from gatewayd.errors import GatewayError, invalid

MediaReader = Callable[[Mapping[str, Any], str], Body]
"""Returns what a protocol has for a part that is no text; raises invalid_request for one that it lacks."""


def read_parts(content: Any, where: str, read_media: MediaReader) -> list[Body]:
    """Return the parts of a content, empty texts included; raise invalid_request for a malformed one."""
    if content is None:
        return []
    if isinstance(content, str):
        return [{"text": content}]
    if not isinstance(content, list):
        raise invalid(f"cannot read {where}: it is neither text nor a list of parts", param=where)
    return [_part(part, f"{where}[{index}]", read_media) for index, part in enumerate(content)]


def media_url(part: Mapping[str, Any]) -> object:
    """Return the URL of a part with a picture, or the data URL of one with a file."""
    if part.get("type") == "file":
        return as_mapping(part.get("file")).get("file_data")
    image = part.get("image_url")
    return image.get("url") if isinstance(image, dict) else image


def refused_part(kind: object, where: str) -> GatewayError:
    """Return the error for a part that a protocol lacks."""
    return invalid(f"cannot send a part of type {kind!r:.80} to this model", param=f"{where}.type")


def refused_address(where: str) -> GatewayError:
    """Return the error for a picture or a file by address, which a provider does not read."""
    return invalid(
        f"cannot send {where}: this provider reads no addresses, send the data in a data URL", param=where
    )


def _part(part: Any, where: str, read_media: MediaReader) -> Body:
    if isinstance(part, str):
        return {"text": part}
    if not isinstance(part, dict):
        raise invalid(f"cannot read {where}: it is not an object", param=where)
    kind = part.get("type")
    if kind not in ("text", "refusal"):
        return read_media(part, where)
    text = part.get(kind)
    if not isinstance(text, str):
        raise invalid(f"cannot read {where}.{kind}: it is not a text", param=f"{where}.{kind}")
    return {"text": text}

"""Export and import files of chats: JSON arrays, or one JSON object a line."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from gatewayctl.prompts import read_whole, usage
from gatewayctl.sanitize import as_json
from gatewayctl.values import read_json

BATCH_BYTES: Final = 8 * 1024 * 1024
"""Maximum number of bytes of one request, unless a single chat is larger."""

BATCH_CHATS: Final = 1000

Record = dict[str, Any]


def read_chats(source: str) -> list[Record]:
    """Return the chats in a file, or on standard input for `-`: an array, one chat, or one on each line."""
    text = read_whole(source, source, "FILE")
    values = _values(text, source)
    for position, value in enumerate(values):
        if not isinstance(value, dict) or "chat" not in value:
            raise usage(f"cannot read {source}: entry {position + 1} is no chat", param="FILE")
    if not values:
        raise usage(f"cannot read {source}: there is no chat in it", param="FILE")
    return values


def batches(chats: Iterable[Record], size: int) -> Iterator[Sequence[Record]]:
    """Yield the chats in parts, each of at most `size` bytes as JSON unless it is a single chat."""
    batch: list[Record] = []
    used = 0
    for chat in chats:
        length = len(json.dumps(chat, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        if batch and (used + length > size or len(batch) >= BATCH_CHATS):
            yield batch
            batch, used = [], 0
        batch.append(chat)
        used += length
    if batch:
        yield batch


def as_lines(chats: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield one JSON object a line."""
    for chat in chats:
        yield f"{as_json(chat)}\n"


def as_array(chats: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield one JSON array in pieces, the first one when the first chat has arrived."""
    is_first = True
    for chat in chats:
        yield f"{'[' if is_first else ','}\n{as_json(chat)}"
        is_first = False
    yield "[]\n" if is_first else "\n]\n"


def write_file(path: Path, pieces: Iterable[str]) -> None:
    """Write a file that only its owner can read; it appears complete or not at all."""
    part = path.with_name(f".{path.name}.part")
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.writelines(pieces)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise usage(f"cannot write {path}: {(error.strerror or str(error)).lower()}", param="--to") from error


def _values(text: str, source: str) -> list[Any]:
    try:
        value = read_json(text)
    except ValueError as error:
        # A file with one object a line is valid JSON only if it has one line.
        lines = [line for line in text.split("\n") if line.strip()]
        try:
            return [read_json(line) for line in lines]
        except ValueError:
            raise usage(
                f"cannot read {source}: it is not JSON, or nested too deeply", param="FILE"
            ) from error
    return value if isinstance(value, list) else [value]

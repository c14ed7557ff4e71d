"""Text of JSON files and of Jupyter notebooks (nbformat 2 to 4)."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from gatewayd.extract.encodings import decode
from gatewayd.extract.formats.plain import single_part_document
from gatewayd.extract.input_bytes import read_bytes
from gatewayd.extract.records import DocumentSource, ExtractedDocument
from gatewayd.extract.text_builder import TextBuilder

MAX_LINE_CHARACTERS: Final = 2000
TEXT_OUTPUT: Final = "text/plain"


def read(source: DocumentSource) -> ExtractedDocument:
    """Return a notebook as Markdown, JSON with long lines one value a line, and other text unchanged."""
    text = decode(read_bytes(source))
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        # A text that only starts like JSON, or JSON Lines.
        return single_part_document(text, source)
    if isinstance(value, dict) and "nbformat" in value and (cells := _cells(value)) is not None:
        return _notebook(value, cells, source)
    if "\\u" in text or any(len(line) > MAX_LINE_CHARACTERS for line in text.splitlines()):
        text = json.dumps(value, ensure_ascii=False, indent=1)
    return single_part_document(text, source)


def _cells(notebook: Mapping[str, Any]) -> list[object] | None:
    """Return the cells of a notebook (before version 4 those of its worksheets), None without any."""
    cells = notebook.get("cells")
    if isinstance(cells, list):
        return cells
    sheets = notebook.get("worksheets")
    found = [_inside(sheet, "cells") for sheet in sheets] if isinstance(sheets, list) else []
    lists = [cells for cells in found if isinstance(cells, list)]
    return [cell for cells in lists for cell in cells] if lists else None


def _notebook(
    notebook: Mapping[str, Any], cells: Iterable[object], source: DocumentSource
) -> ExtractedDocument:
    builder = TextBuilder(source.limits.text)
    language = _inside(notebook, "metadata", "kernelspec", "language")
    for cell in cells:
        if not isinstance(cell, dict):
            continue
        text = (_joined(cell.get("source")) or _joined(cell.get("input"))).strip("\n")
        if cell.get("cell_type") == "heading" and isinstance(level := cell.get("level"), int):
            text = f"{'#' * min(max(level, 1), 6)} {text}"
        if cell.get("cell_type") == "code" and text:
            text = f"```{language if isinstance(language, str) else ''}\n{text}\n```"
        builder.write(f"{text}\n\n")
        for output in _outputs(cell):
            builder.write(f"```\n{output}\n```\n\n")
    builder.end_part(is_markdown=True)
    title = _inside(notebook, "metadata", "title")
    return builder.finish(title=title if isinstance(title, str) else None)


def _outputs(cell: Mapping[str, Any]) -> Iterator[str]:
    """Yield the text outputs of a cell."""
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        text = _joined(_inside(output, "text")) or _joined(_inside(output, "data", TEXT_OUTPUT))
        if text.strip():
            yield text.strip("\n")


def _joined(value: object) -> str:
    """Return a text given as a string or as a list of lines, without line ends in version 2."""
    if isinstance(value, list):
        lines = [piece for piece in value if isinstance(piece, str)]
        return ("" if any(line.endswith("\n") for line in lines) else "\n").join(lines)
    return value if isinstance(value, str) else ""


def _inside(value: object, *names: str) -> object:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value

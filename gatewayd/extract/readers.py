"""Reads a document of any kind that is known."""

import importlib
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, cast

from gatewayd.errors import GatewayError, Kind, shortened
from gatewayd.extract.detect import detect
from gatewayd.extract.input_bytes import expand
from gatewayd.extract.records import Document, Format, Limits, Source
from gatewayd.extract.text_builder import DocumentError

Reader = Callable[[Source], Document]

# The module and function that read a format, imported when it is met first, and what it is called.
READERS: Final = {
    Format.PDF: ("pdf", "read_pdf", "PDF"),
    Format.EPUB: ("pdf", "read_epub", "EPUB book"),
    Format.DOCX: ("word", "read", "Word document"),
    Format.PPTX: ("slides", "read", "PowerPoint presentation"),
    Format.XLSX: ("xlsx", "read", "Excel workbook"),
    Format.XLS: ("xls", "read", "Excel workbook"),
    Format.ODT: ("opendocument", "read", "OpenDocument text"),
    Format.ODS: ("opendocument", "read", "OpenDocument sheet"),
    Format.ODP: ("opendocument", "read", "OpenDocument presentation"),
    Format.RTF: ("rtf", "read", "RTF file"),
    Format.MAIL: ("mail", "read", "e-mail message"),
    Format.HTML: ("markup", "read", "HTML page"),
    Format.MANUAL: ("manual", "read", "manual page"),
    Format.MARKDOWN: ("plain", "read_markdown", "Markdown text"),
    Format.JSON: ("notebooks", "read", "JSON text"),
    Format.TEXT: ("plain", "read_text", "text"),
}
# Formats that need no file of their own, so that they may be in a gzip file.
TEXTS: Final = {
    *(Format.RTF, Format.MAIL, Format.HTML, Format.MANUAL, Format.MARKDOWN, Format.JSON, Format.TEXT),
}

# What the standard library and the readers' libraries raise when a document is not what it says it is.
DAMAGES: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
LONGEST_REASON: Final = 200


def read(path: Path, name: str, content_type: str | None, limits: Limits, formatted: bytes = b"") -> Document:
    """Return the text of a document; `name` and `content_type` are hints.

    `formatted` is what mandoc has made of the manual page in it.

    Raises invalid_request with a sentence for whoever uploaded it.
    """
    source = Source(path, name, content_type, limits, formatted=formatted)
    what = "file"
    try:
        format_ = Format.MANUAL if formatted else detect(source)
        if format_ is Format.GZIP:
            what = "gzip file"
            source = replace(source, name=name.removesuffix(".gz"), content_type=None, data=expand(source))
            format_ = _inner_format(source)
        module, function, what = READERS[format_]
        return _reader(module, function)(source)
    except DocumentError as error:
        raise GatewayError(Kind.INVALID_REQUEST, f"cannot read the {what}: {error.reason}") from error
    except DAMAGES as error:
        reason = shortened(" ".join(f"{type(error).__name__}: {error}".split()), LONGEST_REASON)
        raise GatewayError(
            Kind.INVALID_REQUEST,
            f"cannot read the {what}: it is damaged ({reason}); repair it or make it again",
        ) from error


def _inner_format(source: Source) -> Format:
    if not source.data:
        raise DocumentError("what is in it is empty")
    format_ = detect(source)
    if format_ not in TEXTS:
        raise DocumentError("what is in it is not a text; unpack it and upload that")
    return format_


def _reader(module: str, function: str) -> Reader:
    return cast("Reader", getattr(importlib.import_module(f"gatewayd.extract.formats.{module}"), function))

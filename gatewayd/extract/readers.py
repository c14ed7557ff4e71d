"""Dispatch of a document to the reader of its format."""

import importlib
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, cast

from gatewayd.errors import ErrorKind, GatewayError, shorten
from gatewayd.extract.detect import detect_format
from gatewayd.extract.input_bytes import read_gzip
from gatewayd.extract.records import DocumentFormat, DocumentLimits, DocumentSource, ExtractedDocument
from gatewayd.extract.text_builder import DocumentError

ReadFunction = Callable[[DocumentSource], ExtractedDocument]

# Format -> module and function of its reader (imported on first use), and its name in errors.
READERS: Final = {
    DocumentFormat.PDF: ("pdf", "read_pdf", "PDF"),
    DocumentFormat.EPUB: ("pdf", "read_epub", "EPUB book"),
    DocumentFormat.DOCX: ("word", "read", "Word document"),
    DocumentFormat.PPTX: ("slides", "read", "PowerPoint presentation"),
    DocumentFormat.XLSX: ("xlsx", "read", "Excel workbook"),
    DocumentFormat.XLS: ("xls", "read", "Excel workbook"),
    DocumentFormat.ODT: ("opendocument", "read", "OpenDocument text"),
    DocumentFormat.ODS: ("opendocument", "read", "OpenDocument sheet"),
    DocumentFormat.ODP: ("opendocument", "read", "OpenDocument presentation"),
    DocumentFormat.RTF: ("rtf", "read", "RTF file"),
    DocumentFormat.MAIL: ("mail", "read", "e-mail message"),
    DocumentFormat.HTML: ("markup", "read", "HTML page"),
    DocumentFormat.MANUAL: ("manual", "read", "manual page"),
    DocumentFormat.MARKDOWN: ("plain", "read_markdown", "Markdown text"),
    DocumentFormat.JSON: ("notebooks", "read", "JSON text"),
    DocumentFormat.TEXT: ("plain", "read_text", "text"),
}
# Formats whose readers need no file; only these are read inside a gzip file.
GZIP_FORMATS: Final = {
    *(
        DocumentFormat.RTF,
        DocumentFormat.MAIL,
        DocumentFormat.HTML,
        DocumentFormat.MANUAL,
        DocumentFormat.MARKDOWN,
        DocumentFormat.JSON,
        DocumentFormat.TEXT,
    ),
}

# Exceptions of the standard library and of third-party readers for damaged documents.
DAMAGE_ERRORS: Final = (
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
MAX_REASON_CHARACTERS: Final = 200


def read_document(
    path: Path, name: str, content_type: str | None, limits: DocumentLimits, formatted: bytes = b""
) -> ExtractedDocument:
    """Return the text of a document; `name` and `content_type` are hints.

    `formatted` is the HTML that mandoc rendered from it, b"" for other documents.

    Raises invalid_request with a sentence for the user who uploaded it.
    """
    source = DocumentSource(path, name, content_type, limits, formatted=formatted)
    what = "file"
    try:
        format_ = DocumentFormat.MANUAL if formatted else detect_format(source)
        if format_ is DocumentFormat.GZIP:
            what = "gzip file"
            source = replace(source, name=name.removesuffix(".gz"), content_type=None, data=read_gzip(source))
            format_ = _inner_format(source)
        module, function, what = READERS[format_]
        return _reader(module, function)(source)
    except DocumentError as error:
        raise GatewayError(ErrorKind.INVALID_REQUEST, f"cannot read the {what}: {error.reason}") from error
    except DAMAGE_ERRORS as error:
        reason = shorten(" ".join(f"{type(error).__name__}: {error}".split()), MAX_REASON_CHARACTERS)
        raise GatewayError(
            ErrorKind.INVALID_REQUEST,
            f"cannot read the {what}: it is damaged ({reason}); repair it or make it again",
        ) from error


def _inner_format(source: DocumentSource) -> DocumentFormat:
    if not source.data:
        raise DocumentError("its content is empty")
    format_ = detect_format(source)
    if format_ not in GZIP_FORMATS:
        raise DocumentError("its content is not a text; unpack it and upload that")
    return format_


def _reader(module: str, function: str) -> ReadFunction:
    return cast(
        "ReadFunction", getattr(importlib.import_module(f"gatewayd.extract.formats.{module}"), function)
    )

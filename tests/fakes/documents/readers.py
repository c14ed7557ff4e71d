"""Reads documents that are given as bytes."""

import tempfile
from pathlib import Path

from gatewayd.errors import GatewayError
from gatewayd.extract.readers import read_document
from gatewayd.extract.records import DocumentLimits, ExtractedDocument


def reading(
    data: bytes, name: str = "x", *, content_type: str | None = None, **limits: int
) -> ExtractedDocument:
    """Return what is read from a document."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "blob"
        path.write_bytes(data)
        return read_document(path, name, content_type, DocumentLimits(**limits))


def refusal(data: bytes, name: str = "x", **limits: int) -> str:
    """Return the sentence with which a document is refused, "" when it is read."""
    try:
        reading(data, name, **limits)
    except GatewayError as error:
        return error.message
    return ""

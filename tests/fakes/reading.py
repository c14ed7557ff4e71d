"""Reads documents that are given as bytes."""

import tempfile
from pathlib import Path

from gatewayd.errors import GatewayError
from gatewayd.extract.readers import read
from gatewayd.extract.records import Document, Limits


def reading(data: bytes, name: str = "x", *, content_type: str | None = None, **limits: int) -> Document:
    """Return what is read from a document."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "blob"
        path.write_bytes(data)
        return read(path, name, content_type, Limits(**limits))


def refusal(data: bytes, name: str = "x", **limits: int) -> str:
    """Return the sentence with which a document is refused, "" when it is read."""
    try:
        reading(data, name, **limits)
    except GatewayError as error:
        return error.message
    return ""

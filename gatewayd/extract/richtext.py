"""Text of RTF files."""

from typing import Any, Final

from striprtf.striprtf import rtf_to_text

from gatewayd.extract.blob import read_bytes
from gatewayd.extract.plain import as_document
from gatewayd.extract.records import Document, Source

# The library has no types.
TO_TEXT: Final[Any] = rtf_to_text


def read(source: Source) -> Document:
    """Return the text of an RTF file, which says in itself which encoding it is in."""
    text = TO_TEXT(read_bytes(source).decode("latin-1").replace("\0", ""), errors="replace")
    return as_document(text, source)

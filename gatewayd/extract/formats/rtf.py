"""Text of RTF files."""

import re
from typing import Any, Final

from striprtf.striprtf import rtf_to_text

from gatewayd.extract.formats.plain import single_part_document
from gatewayd.extract.input_bytes import read_bytes
from gatewayd.extract.records import DocumentSource, ExtractedDocument

# The library searches for addresses of links in a time that grows with the cube of the text.
LINK: Final = re.compile(r"HYPERLINK(?=\s\")", re.IGNORECASE)
# The library has no types.
TO_TEXT: Final[Any] = rtf_to_text


def read(source: DocumentSource) -> ExtractedDocument:
    """Return the text of an RTF file, which says in itself which encoding it is in."""
    data = read_bytes(source).decode("latin-1").replace("\0", "")
    return single_part_document(TO_TEXT(LINK.sub("LINK", data), errors="replace"), source)

"""Text of RTF files."""

import re
from typing import Any, Final

from striprtf.striprtf import rtf_to_text

from gatewayd.extract.formats.plain import single_part_document
from gatewayd.extract.input_bytes import read_bytes
from gatewayd.extract.records import DocumentSource, ExtractedDocument

# striprtf takes cubic time to search for the addresses of links.
LINK: Final = re.compile(r"HYPERLINK(?=\s\")", re.IGNORECASE)
# striprtf has no types.
TO_TEXT: Final[Any] = rtf_to_text


def read(source: DocumentSource) -> ExtractedDocument:
    """Return the text of an RTF file, which declares its own encoding."""
    data = read_bytes(source).decode("latin-1").replace("\0", "")
    return single_part_document(TO_TEXT(LINK.sub("LINK", data), errors="replace"), source)

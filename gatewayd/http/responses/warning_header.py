"""The header that tells callers which parts of a good request could not be honoured."""

from collections.abc import Sequence
from typing import Final

WARNING_HEADER: Final = "X-Gateway-Warning"
MAX_HEADER_CHARACTERS: Final = 2048
REPLACEMENTS: Final = {**dict.fromkeys(range(0x20), "?"), 0x7F: "?"}


def warning_headers(sentences: Sequence[str]) -> dict[str, str]:
    """Return the header with the sentences, none for none.

    The sentences quote what callers sent: other than printable ASCII is replaced, and what is over 2048
    characters is cut.
    """
    if not sentences:
        return {}
    # More sentences than the header has characters have no place in it.
    joined = "; ".join(sentences[:MAX_HEADER_CHARACTERS])[: MAX_HEADER_CHARACTERS + 1]
    text = joined.translate(REPLACEMENTS).encode("ascii", "replace").decode("ascii")
    return {
        WARNING_HEADER: text
        if len(text) <= MAX_HEADER_CHARACTERS
        else f"{text[: MAX_HEADER_CHARACTERS - 3]}..."
    }

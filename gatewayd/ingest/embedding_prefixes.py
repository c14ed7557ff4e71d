"""What is put before texts that are embedded, and how the name of a space tells of it."""

import hashlib
from dataclasses import dataclass
from typing import Final

from gatewayd.ingest.records import EmbeddingPurpose

MARK_CHARACTERS: Final = 12


@dataclass(frozen=True, slots=True)
class EmbeddingPrefixes:
    """What is put before questions, and before passages."""

    query: str = ""
    passage: str = ""

    def before(self, purpose: EmbeddingPurpose) -> str:
        """Return what is put before the texts of a purpose."""
        return self.query if purpose is EmbeddingPurpose.QUERY else self.passage

    def mark(self, own: "EmbeddingPrefixes | None" = None) -> str:
        """Return the end of a space's name that tells these from the model's `own` ones, "" when they are
        those."""
        if self == (own or EmbeddingPrefixes()):
            return ""
        return ":" + hashlib.sha256(f"{self.query}\0{self.passage}".encode()).hexdigest()[:MARK_CHARACTERS]

"""Full texts of files for a model, up to a number of characters (full-context mode)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gatewayd.ingest.interfaces import PassageStore
from gatewayd.ingest.records import File, FileStatus
from gatewayd.knowledge.citations import file_metadata
from gatewayd.knowledge.interfaces import CollectionStore
from gatewayd.knowledge.records import Collection

PAGE_SIZE: Final = 100

TextWithMetadata = tuple[Mapping[str, Any], str]
"""The metadata of a text, and the text."""


@dataclass(slots=True)
class CharacterBudget:
    """Remaining characters of full text for one request; `warnings` name the texts that were cut."""

    left: int
    warnings: list[str] = field(default_factory=list)

    def take(self, text: str, name: str) -> str:
        """Return the part of a text that fits into the budget, and add a warning if it is cut."""
        taken = text[: self.left]
        self.left -= len(taken)
        if len(taken) < len(text):
            used = f"only the first {len(taken)} of its {len(text)} characters" if taken else "none of it"
            self.warnings.append(f"cannot use {name} whole: {used} had room in the context")
        return taken


class FullTextReader:
    """Reads full texts. The caller must check that the actor may read the files."""

    def __init__(self, texts: PassageStore, collections: CollectionStore) -> None:
        self._texts = texts
        self._collections = collections

    async def file(self, file: File, budget: CharacterBudget, path: str = "") -> Sequence[TextWithMetadata]:
        """Return the text of a file with its metadata; empty without a text or without budget left."""
        text = await self._texts.find_text(file.id)
        taken = budget.take(text, f"file {file.name!r}") if text else ""
        return [(file_metadata(file, path), taken)] if taken else []

    async def collection(self, collection: Collection, budget: CharacterBudget) -> Sequence[TextWithMetadata]:
        """Return the texts of the completed files of a collection, in the order of linking."""
        texts: list[TextWithMetadata] = []
        offset = skipped = 0
        while True:
            page, total = await self._collections.list_files(collection.id, offset=offset, limit=PAGE_SIZE)
            for link, file in page:
                if file.status is FileStatus.COMPLETED:
                    skipped += not budget.left
                    texts += await self.file(file, budget, link.path) if budget.left else ()
            offset += len(page)
            if not page or offset >= total:
                break
        if skipped:
            budget.warnings.append(
                f"cannot use collection {collection.name!r} whole: {skipped} of its files had no room in the"
                " context"
            )
        return texts

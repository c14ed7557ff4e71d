"""Selection of the best passages of a search, without duplicates and stale index entries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gatewayd.ingest.interfaces import FileStore
from gatewayd.ingest.records import File, ScopeKind, SearchScope
from gatewayd.knowledge.interfaces import CollectionStore, PassageReader
from gatewayd.knowledge.records import StoredPassage

MIN_SLICE_SIZE: Final = 16


@dataclass(frozen=True, slots=True)
class SelectedPassage:
    """A passage with its file, and the path of the file in a collection that was searched."""

    stored: StoredPassage
    file: File
    path: str = ""


class PassageSelector:
    """Reads passages, best first, until the wanted number is reached.

    An index is a cache: a hit counts only if the database has the passage in one of the scopes.
    """

    def __init__(self, passages: PassageReader, files: FileStore, collections: CollectionStore) -> None:
        self._passages = passages
        self._files = files
        self._collections = collections

    async def pick(
        self, scopes: Sequence[SearchScope], passage_ids: Sequence[int], wanted: int
    ) -> Sequence[SelectedPassage]:
        """Return up to `wanted` passages in the order of `passage_ids`, without duplicate texts."""
        picked: list[SelectedPassage] = []
        seen: set[str] = set()
        size = max(wanted, MIN_SLICE_SIZE)
        for start in range(0, len(passage_ids), size):
            if len(picked) >= wanted:
                break
            for each in await self._read(scopes, passage_ids[start : start + size]):
                words = normalise_whitespace(each.stored.text)
                if words not in seen:
                    seen.add(words)
                    picked.append(each)
        return picked[:wanted]

    async def _read(
        self, scopes: Sequence[SearchScope], passage_ids: Sequence[int]
    ) -> Sequence[SelectedPassage]:
        stored = await self._passages.read(passage_ids)
        found = [stored[passage_id] for passage_id in passage_ids if passage_id in stored]
        paths = await self._within(scopes, list(dict.fromkeys(each.file_id for each in found)))
        files = await self._files.find_many(list(paths)) if paths else {}
        return [
            SelectedPassage(each, files[each.file_id], paths[each.file_id])
            for each in found
            if each.file_id in files
        ]

    async def _within(self, scopes: Sequence[SearchScope], file_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the paths of those files that are now in one of the scopes, by file id."""
        inside = {scope.id for scope in scopes if scope.kind is ScopeKind.FILE}.intersection(file_ids)
        paths = dict.fromkeys(inside, "")
        for scope in scopes:
            rest = [file_id for file_id in file_ids if file_id not in paths]
            if rest and scope.kind is ScopeKind.COLLECTION:
                links = await self._collections.find_links(scope.id, rest)
                paths |= {file_id: link.path for file_id, link in links.items()}
        return paths


def normalise_whitespace(text: str) -> str:
    """Return a text with each run of white space as one blank, for the comparison of texts."""
    return " ".join(text.split())

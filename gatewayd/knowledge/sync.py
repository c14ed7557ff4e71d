"""Synchronisation of a collection with a client's directory tree: compares the two and removes old files."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gatewayd.accounts.records import Actor
from gatewayd.errors import ErrorKind, GatewayError, invalid, shorten
from gatewayd.ingest.records import File, FileStatus
from gatewayd.ingest.upload import last_component
from gatewayd.knowledge.collections import CollectionService
from gatewayd.knowledge.directories import DirectoryService
from gatewayd.knowledge.members import CollectionMembers, CollectionServices
from gatewayd.knowledge.paths import ancestor_paths, directory_paths, join_path, normalise_path
from gatewayd.knowledge.records import CollectionDirectory, CollectionLink

MAX_ENTRIES: Final = 200_000
MAX_CHECKSUM_CHARACTERS: Final = 255
MAX_MANIFEST_CHARACTERS: Final = 64 * 1024 * 1024
"""Maximum total length of the paths of all directories of a manifest."""

LinkedFile = tuple[CollectionLink, File]
"""A file of a collection with its link."""


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """A file of the client's tree: directory ("" for the root), name, and the checksum of its version."""

    filename: str
    checksum: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class TreeDiff:
    """The steps for a sync client to make a collection equal to its tree.

    `modified` contains the file that each entry replaces, `mkdir` the paths of missing directories, parents
    first, `rmdir` the ids of directories that no entry needs, `directories` the ids of existing ones by path.
    """

    added: Sequence[ManifestEntry]
    modified: Sequence[tuple[ManifestEntry, File]]
    deleted: Sequence[File]
    unmodified: int
    mkdir: Sequence[str]
    rmdir: Sequence[str]
    directories: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SyncComparison:
    """Comparison of the files of an origin with the client's tree.

    `added` and `modified` are paths to upload, `unmodified` paths are complete. `pending` files are being
    processed, `failed` ones have the content that failed before. The paths of `deleted` files are no longer
    in the tree.
    """

    added: Sequence[str]
    modified: Sequence[str]
    unmodified: Sequence[str]
    pending: Sequence[LinkedFile]
    failed: Sequence[LinkedFile]
    deleted: Sequence[LinkedFile]


class CollectionSync:
    """Compares trees with collections and cleans up; needs write access to the collection."""

    def __init__(
        self, services: CollectionServices, members: CollectionMembers, directories: DirectoryService
    ) -> None:
        self._collections: CollectionService = services.collections
        self._store = services.store
        self._members = members
        self._directories = directories

    async def diff(self, actor: Actor, collection_id: str, entries: Sequence[ManifestEntry]) -> TreeDiff:
        """Compare a client's whole tree with the files without an origin."""
        await self._collections.get_writable(actor, collection_id)
        directories = await self._store.list_directories(collection_id)
        held, _ = await self._store.list_files(collection_id, origin="")
        # Another thread, as there may be very many.
        return await asyncio.to_thread(_diff, directories, held, entries)

    async def compare(
        self, actor: Actor, collection_id: str, origin: str, entries: Sequence[ManifestEntry]
    ) -> SyncComparison:
        """Compare all files of an origin with those of the collection; `path` is the full path here."""
        await self._collections.get_writable(actor, collection_id)
        if not origin:
            raise invalid("cannot compare: origin is empty", param="origin")
        held, _ = await self._store.list_files(collection_id, origin=origin)
        # Another thread, as there may be very many.
        return await asyncio.to_thread(_compare, held, entries)

    async def cleanup(
        self, actor: Actor, collection_id: str, file_ids: Sequence[str], directory_ids: Sequence[str] = ()
    ) -> int:
        """Remove files from the collection, delete those in no other one, then remove directories.

        Missing files and directories are ignored. Returns the number of removed files.
        """
        results = await self._members.remove_many(actor, collection_id, file_ids)
        if directory_ids:
            await self._directories.remove_many(actor, collection_id, directory_ids)
        return sum(result.is_changed for result in results)


def _diff(
    directories: Sequence[CollectionDirectory], held: Sequence[LinkedFile], entries: Sequence[ManifestEntry]
) -> TreeDiff:
    _check(entries)
    paths = directory_paths(directories)
    current = _newest(
        (join_path(paths.get(link.directory_id or "", ""), file.name), (link, file)) for link, file in held
    )
    wanted = {_path_of(entry): entry for entry in entries}
    added, modified, unmodified = [], [], 0
    for place, entry in wanted.items():
        found = current.get(place)
        if found is None:
            added.append(entry)
        elif found[1].checksum != entry.checksum:
            modified.append((entry, found[1]))
        else:
            unmodified += 1
    needed = _needed({entry.path for entry in entries})
    by_path = {path: directory_id for directory_id, path in paths.items()}
    return TreeDiff(
        added,
        modified,
        [file for place, (_, file) in current.items() if place not in wanted],
        unmodified,
        [spelt for path, spelt in needed.items() if path not in by_path],
        [directory_id for path, directory_id in by_path.items() if path not in needed],
        {needed.get(path, path): directory_id for path, directory_id in by_path.items()},
    )


def _compare(held: Sequence[LinkedFile], entries: Sequence[ManifestEntry]) -> SyncComparison:
    _check(entries)
    versions: dict[str, list[LinkedFile]] = {}
    for link, file in sorted(held, key=lambda each: _age(each[1])):
        versions.setdefault(link.path, []).append((link, file))
    return _compared(versions, {entry.path: entry.checksum for entry in entries})


def _compared(versions: Mapping[str, Sequence[LinkedFile]], wanted: Mapping[str, str]) -> SyncComparison:
    added, modified, unmodified = [], [], []
    pending, failed = [], []
    for path, checksum in wanted.items():
        found = versions.get(path)
        if not found:
            added.append(path)
            continue
        current = _current(found, checksum)
        if current[1].checksum != checksum:
            modified.append(path)
        elif current[1].status is FileStatus.COMPLETED:
            unmodified.append(path)
        elif current[1].status is FileStatus.FAILED:
            failed.append(current)
        else:
            pending.append(current)
    deleted = [each for path, found in versions.items() if path not in wanted for each in found]
    return SyncComparison(added, modified, unmodified, pending, failed, deleted)


def _current(found: Sequence[LinkedFile], checksum: str) -> LinkedFile:
    """Return the version to compare with, of several ordered by age.

    It is the newest, unless that failed with other content: then it is the newest version that did not fail.
    """
    newest = found[-1]
    if newest[1].status is FileStatus.FAILED and newest[1].checksum != checksum:
        usable = [each for each in found if each[1].status is not FileStatus.FAILED]
        return usable[-1] if usable else newest
    return newest


def _newest(placed: Iterable[tuple[str, LinkedFile]]) -> Mapping[str, LinkedFile]:
    """Return the newest file of each path."""
    current: dict[str, LinkedFile] = {}
    for place, held in placed:
        known = current.get(place)
        if known is None or _age(held[1]) > _age(known[1]):
            current[place] = held
    return current


def _age(file: File) -> tuple[int, str]:
    return file.created_at, file.id


def _path_of(entry: ManifestEntry) -> str:
    """Return the path of an entry, with its name normalised like that of an upload."""
    return join_path(normalise_path(entry.path, "path"), last_component(entry.filename))


def _needed(paths: Iterable[str]) -> Mapping[str, str]:
    """Return the directories of paths, parents first: normalised path to the client's spelling."""
    needed: dict[str, str] = {}
    characters = 0
    for given in sorted(paths):
        spelt = [part for part in given.split("/") if part]
        for depth, path in enumerate(ancestor_paths(normalise_path(given, "path")), 1):
            if path not in needed:
                needed[path] = "/".join(spelt[:depth])
                characters += len(path)
        if characters > MAX_MANIFEST_CHARACTERS:
            raise GatewayError(
                ErrorKind.TOO_LARGE,
                "cannot compare: the manifest has too many or too deep directories",
                param="manifest",
            )
    return dict(sorted(needed.items(), key=lambda item: item[0].count("/")))


def _check(entries: Sequence[ManifestEntry]) -> None:
    if len(entries) > MAX_ENTRIES:
        raise GatewayError(
            ErrorKind.TOO_LARGE,
            f"cannot compare: the manifest has more than {MAX_ENTRIES} entries",
            param="manifest",
        )
    for entry in entries:
        if not 0 < len(entry.checksum) <= MAX_CHECKSUM_CHARACTERS:
            raise invalid(
                f"cannot compare {shorten(entry.path)!r}: its checksum is empty or too long",
                param="checksum",
            )

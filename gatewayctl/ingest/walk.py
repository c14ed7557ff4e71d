"""Walk over the files of a directory, in a stable order."""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from gatewayctl.ingest.folder import Folder, IrregularError, reason
from gatewayctl.ingest.records import Candidate, IngestProblem
from gatewayctl.ingest.rules import IGNORE_FILES, Rules

MAX_RULES_BYTES: Final = 1 << 20
# Maximum number of characters; the daemon accepts no longer paths.
MAX_PATH_CHARS: Final = 4096

Place = tuple[int, int]
"""Device and inode."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Selection of the files of a directory; `max_size` in bytes."""

    rules: Rules
    ignore_files: bool = True
    follow: bool = False
    max_size: int | None = None


@dataclass(frozen=True, slots=True)
class Visit:
    """A directory to enter; `above` has its ancestors, to recognise circular links."""

    parts: tuple[str, ...]
    rules: Rules
    above: frozenset[Place]


class Walk:
    """Yields the files below a directory, depth first by name, and collects problems.

    Symbolic links are skipped unless they are followed; pipes, sockets and devices are always skipped.
    `skipped` counts these and files over the maximum size, `problems` grows during the walk.
    """

    def __init__(self, folder: Folder, choice: Choice) -> None:
        self._folder = folder
        self._choice = choice
        self.skipped = 0
        self.problems: list[IngestProblem] = []

    def __iter__(self) -> Iterator[Candidate]:
        levels = [iter(self._enter(Visit((), self._choice.rules, frozenset({self._folder.place}))))]
        while levels:
            found = next(levels[-1], None)
            if found is None:
                levels.pop()
            elif isinstance(found, Visit):
                levels.append(iter(self._enter(found)))
            else:
                yield found

    def _enter(self, visit: Visit) -> Sequence[Candidate | Visit]:
        """Return the selected entries of one directory."""
        try:
            with self._folder.listed(visit.parts) as entries:
                rules = self._rules(visit, entries)
                if rules is None:
                    return []
                here = Visit(visit.parts, rules, visit.above)
                return [found for entry in entries for found in self._take(here, entry)]
        except OSError as error:
            path = "/".join(visit.parts) or "."
            self.problems.append(IngestProblem(path, f"cannot read the directory: {reason(error)}"))
            return []

    def _rules(self, visit: Visit, entries: Sequence["os.DirEntry[str]"]) -> Rules | None:
        """Return the rules of a directory, None if they cannot be read; the directory is skipped then."""
        rules = visit.rules
        names = {entry.name for entry in entries} if self._choice.ignore_files else set()
        for name in (each for each in IGNORE_FILES if each in names):
            parts = (*visit.parts, name)
            try:
                with closing(self._folder.open_file(parts)) as file:
                    text = file.read(MAX_RULES_BYTES).decode("utf-8-sig", "surrogateescape")
            except IrregularError:
                continue
            except OSError as error:
                self._failed(parts, f"cannot read the patterns: {reason(error)}; its directory is left out")
                return None
            rules = rules.entering(len(visit.parts), text)
        return rules

    def _take(self, visit: Visit, entry: "os.DirEntry[str]") -> Iterator[Candidate | Visit]:
        follow, parts = self._choice.follow, (*visit.parts, entry.name)
        if entry.is_symlink() and not follow:
            self.skipped += 1
            return
        try:
            if entry.is_dir(follow_symlinks=follow):
                yield from self._below(visit, entry, parts)
            elif visit.rules.takes_file(parts):
                yield from self._file(entry, parts)
        except FileNotFoundError:
            if entry.is_symlink():
                self._failed(parts, "cannot follow the link: it leads nowhere")
        except OSError as error:
            self._failed(parts, f"cannot read the file: {reason(error)}")

    def _below(
        self, visit: Visit, entry: "os.DirEntry[str]", parts: tuple[str, ...]
    ) -> Iterator[Candidate | Visit]:
        if not visit.rules.takes_folder(parts):
            return
        path = "/".join(parts)
        if len(path) > MAX_PATH_CHARS:
            error = "cannot read the directory: its path is too long"
            self.problems.append(IngestProblem(path, error, is_walk=False))
            return
        found = entry.stat(follow_symlinks=self._choice.follow)
        place = (found.st_dev, found.st_ino)
        if place in visit.above:
            self.skipped += 1
            return
        yield Visit(parts, visit.rules, visit.above | {place} if self._choice.follow else visit.above)

    def _file(self, entry: "os.DirEntry[str]", parts: tuple[str, ...]) -> Iterator[Candidate]:
        found = entry.stat(follow_symlinks=self._choice.follow)
        largest = self._choice.max_size
        is_large = largest is not None and found.st_size > largest
        if is_large or not entry.is_file(follow_symlinks=self._choice.follow):
            self.skipped += 1
        else:
            yield Candidate(parts, found.st_size)

    def _failed(self, parts: Sequence[str], error: str) -> None:
        self.problems.append(IngestProblem("/".join(parts), error))

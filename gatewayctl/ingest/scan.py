"""Scan of a whole directory: path and checksum of each file, and the paths that could not be read."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from gatewayctl.ingest.folder import Folder
from gatewayctl.ingest.readers import GoneError, Reader, ReadError
from gatewayctl.ingest.records import Candidate, IngestProblem, Progress, Version
from gatewayctl.ingest.stop import Stop
from gatewayctl.ingest.threads import in_threads
from gatewayctl.ingest.walk import Choice, Walk

TWICE = "cannot take the file: another one has the same name, spelt with other characters"


@dataclass(frozen=True, slots=True)
class Scan:
    """The files of a directory by path in the order of the walk, and the problems.

    `skipped` counts links, files that are not regular, and files over the maximum size.
    """

    versions: dict[str, Version]
    problems: tuple[IngestProblem, ...]
    skipped: int

    @property
    def is_whole(self) -> bool:
        """Whether the scan is complete, so that a missing file is really deleted."""
        return not any(problem.is_walk for problem in self.problems)


class Scanner:
    """Scans a folder repeatedly; it reads unchanged files only in the first scans."""

    def __init__(self, folder: Folder, choice: Choice, reader: Reader, stop: Stop) -> None:
        self._folder = folder
        self._choice = choice
        self._reader = reader
        self._stop = stop

    def scan(self, progress: Progress) -> Scan:
        """Return the scan of the folder; raises StoppedError."""
        walk = Walk(self._folder, self._choice)
        candidates: list[Candidate] = []
        for candidate in walk:
            self._stop.check()
            candidates.append(candidate)
        progress.begin("reading", sum(candidate.size for candidate in candidates))
        versions: dict[str, Version] = {}
        problems = list(walk.problems)
        work = partial(self._read, progress.advance)
        for found in in_threads(work, candidates, os.cpu_count() or 1):
            if isinstance(found, IngestProblem):
                problems.append(found)
            elif found is not None and found.place in versions:
                problems.append(IngestProblem("/".join(found.parts), TWICE, is_walk=False))
            elif found is not None:
                versions[found.place] = found
        return Scan(versions, tuple(problems), walk.skipped)

    def _read(self, advance: Callable[[int], None], candidate: Candidate) -> Version | IngestProblem | None:
        try:
            return self._reader.read(candidate, advance)
        except GoneError:
            return None
        except ReadError as error:
            return IngestProblem("/".join(candidate.parts), str(error), error.is_walk)

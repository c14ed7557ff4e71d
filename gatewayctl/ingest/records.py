"""Records that the stages of an ingestion exchange."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class What(StrEnum):
    """Outcome of a file; each file counts once.

    `added` and `changed` files are completed, `pending` ones are not yet.
    """

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    PENDING = "pending"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A regular file that the walk found: the names of its path, and its size in bytes."""

    parts: tuple[str, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Stamp:
    """Attributes from `stat` that change with the content of a file."""

    inode: tuple[int, int]
    size: int
    times: tuple[int, int]

    @classmethod
    def of(cls, descriptor: int) -> "Stamp":
        """Return the stamp of an open file."""
        now = os.fstat(descriptor)
        return cls((now.st_dev, now.st_ino), now.st_size, (now.st_mtime_ns, now.st_ctime_ns))


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a file that was read: its path, its path for the daemon, its content."""

    parts: tuple[str, ...]
    place: str
    checksum: str
    stamp: Stamp


@dataclass(frozen=True, slots=True)
class IngestProblem:
    """A path that could not be read; with `is_walk` it may contain files that the walk did not see."""

    path: str
    error: str
    is_walk: bool = True


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """Outcome of one file; `path` is safe to show, `id` is that of the daemon.

    `warning` says which part of a completed file searches cannot find.
    """

    path: str
    outcome: What
    id: str | None = None
    error: str | None = None
    warning: str | None = None


@dataclass
class Report:
    """Report of a run; `on_outcome` receives each final outcome."""

    on_outcome: Callable[[FileOutcome], None] = lambda outcome: None
    outcomes: dict[str, FileOutcome] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    uploaded: int = 0
    skipped: int = 0
    is_partial: bool = False

    def add(
        self,
        path: str,
        what: What,
        file_id: str | None = None,
        error: str | None = None,
        warning: str | None = None,
    ) -> None:
        """Add the final outcome of a file."""
        outcome = FileOutcome(shown(path), what, file_id, error, warning)
        self.outcomes[path] = outcome
        if what is What.FAILED:
            self.is_partial = True
        self.on_outcome(outcome)

    def note(self, sentence: str) -> None:
        """Add something that was not done, which makes the run partial."""
        self.notes.append(sentence)
        self.is_partial = True

    def count(self, what: What) -> int:
        """Return the number of files with this outcome."""
        return sum(outcome.outcome is what for outcome in self.outcomes.values())

    def failures(self) -> Iterator[FileOutcome]:
        """Yield the files that failed."""
        return (outcome for outcome in self.outcomes.values() if outcome.outcome is What.FAILED)

    def warnings(self) -> Iterator[FileOutcome]:
        """Yield the files with a warning."""
        return (outcome for outcome in self.outcomes.values() if outcome.warning is not None)


def shown(name: str) -> str:
    r"""Return a name of the file system as text for any stream: bytes that are no UTF-8 become `\xff`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


class Progress(Protocol):
    """Receives the progress of a run; several threads may call it."""

    def begin(self, title: str, total: int) -> None:
        """Start a stage of `total` units (bytes or files) and end the one before."""

    def advance(self, amount: int) -> None:
        """Add progress to the stage."""

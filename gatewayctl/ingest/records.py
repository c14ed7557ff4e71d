"""What the stages of an ingestion hand to each other."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class What(StrEnum):
    """What became of a file; each file counts once.

    `added` and `changed` ones are completed, `pending` ones are not yet.
    """

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    PENDING = "pending"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A regular file that the walk found: the names on the way to it, and its size in bytes."""

    parts: tuple[str, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Stamp:
    """What changes when a file does, as `stat` tells it."""

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
    """A file that was read: where it lies, what the daemon calls its place, what it held."""

    parts: tuple[str, ...]
    place: str
    checksum: str
    stamp: Stamp


@dataclass(frozen=True, slots=True)
class IngestProblem:
    """What could not be read; `is_walk` when files may be there that nobody saw."""

    path: str
    error: str
    is_walk: bool = True


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """What became of one file; `path` can be shown, `id` is the daemon's.

    `warning` says what of a completed one cannot be found.
    """

    path: str
    outcome: What
    id: str | None = None
    error: str | None = None
    warning: str | None = None


@dataclass
class Report:
    """What a run did; `told` hears of each outcome when it is certain."""

    told: Callable[[FileOutcome], None] = lambda outcome: None
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
        """Settle a file."""
        outcome = FileOutcome(shown(path), what, file_id, error, warning)
        self.outcomes[path] = outcome
        if what is What.FAILED:
            self.is_partial = True
        self.told(outcome)

    def note(self, sentence: str) -> None:
        """Remember that something was not done, which makes the run partial."""
        self.notes.append(sentence)
        self.is_partial = True

    def count(self, what: What) -> int:
        """Return how many files had this outcome."""
        return sum(outcome.outcome is what for outcome in self.outcomes.values())

    def failures(self) -> Iterator[FileOutcome]:
        """Yield the files that failed."""
        return (outcome for outcome in self.outcomes.values() if outcome.outcome is What.FAILED)

    def warnings(self) -> Iterator[FileOutcome]:
        """Yield the files of which something cannot be found."""
        return (outcome for outcome in self.outcomes.values() if outcome.warning is not None)


def shown(name: str) -> str:
    r"""Return a name of the file system as text that any stream takes: bytes that are no UTF-8 as `\xff`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


class Progress(Protocol):
    """Is told how far a run is; may be called from several threads."""

    def begin(self, title: str, total: int) -> None:
        """Start a stage of `total` units, bytes or files, which ends the one before."""

    def advance(self, amount: int) -> None:
        """Add to what is done of the stage."""

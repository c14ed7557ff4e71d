"""What an import has done: numbers by kind, and each record that was left out or changed, with the reason."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from gatewayd.errors import shorten

MAX_REMARKS: Final = 1000
"""Maximum number of remarks of one kind; further ones are counted."""


class ImportKind(StrEnum):
    """Kinds of records that are imported, in the order of the report."""

    GROUP = "group"
    USER = "user"
    KEY = "key"
    COLLECTION = "collection"
    DIRECTORY = "directory"
    FILE = "file"
    FOLDER = "folder"
    CHAT = "chat"
    SHARE = "shared chat"
    FUNCTION = "function"
    TOOL = "tool"
    VALVES = "user valves"
    MODEL = "model"
    PROVIDER = "provider"
    TOOL_SERVER = "tool server"
    SETTING = "setting"


@dataclass(frozen=True, slots=True)
class ImportRemark:
    """A record that was left out, or imported with a change; `count` such records have no `id`."""

    kind: str
    id: str
    name: str
    reason: str
    count: int = 1


class ImportLedger:
    """Counts what an import does."""

    def __init__(self) -> None:
        self._imported: Counter[str] = Counter()
        self._present: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()
        self._refusals: list[ImportRemark] = []
        self._changes: list[ImportRemark] = []
        self._listed: Counter[tuple[str, bool]] = Counter()

    @property
    def has_imported(self) -> bool:
        """Whether anything was imported."""
        return self._imported.total() > 0

    def imported(self, kind: ImportKind) -> None:
        """Count a record that is new here."""
        self._imported[kind] += 1

    def present(self, kind: ImportKind) -> None:
        """Count a record that was here already, and stays as it is."""
        self._present[kind] += 1

    def leave_out(self, kind: str, record_id: str, name: str, reason: str, *, count: int = 1) -> None:
        """Count records that are not imported."""
        self._left_out[kind] += count
        self._list(self._refusals, ImportRemark(kind, record_id, shorten(name), reason, count))

    def remark(self, kind: ImportKind, record_id: str, name: str, changes: Sequence[str]) -> None:
        """Note what differs in a record that is imported."""
        for reason in changes:
            self._list(self._changes, ImportRemark(kind, record_id, shorten(name), reason))

    def report(self) -> Mapping[str, Any]:
        """Return the numbers and remarks as JSON values."""
        others = [kind for kind in self._left_out if kind not in set(ImportKind)]
        return {
            "kinds": [self._numbers(kind) for kind in [*(each.value for each in ImportKind), *others]],
            "left_out": [asdict(each) for each in self._refusals],
            "changed": [asdict(each) for each in self._changes],
        }

    def _list(self, remarks: list[ImportRemark], remark: ImportRemark) -> None:
        key = (remark.kind, remarks is self._refusals)
        self._listed[key] += 1
        if self._listed[key] <= MAX_REMARKS:
            remarks.append(remark)

    def _numbers(self, kind: str) -> Mapping[str, Any]:
        imported, present, left_out = self._imported[kind], self._present[kind], self._left_out[kind]
        return {
            "kind": kind,
            "found": imported + present + left_out,
            "imported": imported,
            "present": present,
            "left_out": left_out,
        }

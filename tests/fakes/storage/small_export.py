"""The export of people with two rows, one chat and two files, one of which has lost its bytes."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gatewayd.accounts.users import Users
from gatewayd.batches.files import BatchFiles
from gatewayd.ingest.blobs import LocalBlobs
from gatewayd.privacy.export import ExportParts, PersonExport
from tests.fakes.documents.records import file

CONTENT = b"0123456789" * 200_000
F1_KEY = "f1.attempt"
"""Key of the bytes of the file f1, which is not its id."""


class SmallRecords:
    """Implements `privacy.interfaces.PersonRecords`; `failure` is raised behind the first page."""

    def __init__(self) -> None:
        self.failure: Exception | None = None

    async def pages(self, user_id: str, email: str) -> AsyncIterator[tuple[str, Sequence[Mapping[str, Any]]]]:
        yield "API keys", [{"id": "k1", "name": "Ä"}, {"id": "k2"}]
        if self.failure is not None:
            raise self.failure
        yield "API keys", [{"id": "k3"}]

    async def ids(self, table: str, user_id: str) -> AsyncIterator[str]:
        known = {"chats": ["c1", "gone"], "files": ["f1", "f2", "gone"], "batch_files": ["b1", "b2"]}
        for found in known[table]:
            yield found


def small_export(users: Users, folder: Path, records: SmallRecords, blobs: Any = None) -> PersonExport:
    """Return the export; the bytes of files are in a folder, or in other `blobs`."""
    documents, results = LocalBlobs(folder), LocalBlobs(folder / "batches")
    for path in (documents.path(F1_KEY), results.path("b1")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(CONTENT)
    known = {"f1": replace(file("f1", name="résumé.txt"), blob=F1_KEY), "f2": file("f2", name="..")}

    async def find_chat(chat_id: str) -> dict[str, Any] | None:
        return {"id": chat_id, "title": "T"} if chat_id == "c1" else None

    async def find_file(file_id: str) -> Any:
        return known.get(file_id)

    async def find_text(file_id: str) -> str | None:
        return "text" if file_id == "f1" else None

    chats: Any = SimpleNamespace(find_record=find_chat)
    files: Any = SimpleNamespace(find=find_file)
    texts: Any = SimpleNamespace(find_text=find_text)
    rows: Any = None
    batches = BatchFiles(rows, results)
    return PersonExport(ExportParts(users, records, chats, files, texts, blobs or documents, batches))

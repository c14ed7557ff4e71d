"""The export of people with two rows, one chat and two files, one of which has lost its bytes."""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gatewayd.accounts.users import Users
from gatewayd.privacy.export import ExportParts, PersonExport
from tests.fakes.documents.records import file

CONTENT = b"0123456789" * 200_000


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
        for found in {"chats": ["c1", "gone"], "files": ["f1", "f2", "gone"], "batch_files": ["b1"]}[table]:
            yield found


def small_export(users: Users, folder: Path, records: SmallRecords) -> PersonExport:
    """Return the export; the bytes of files are in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("f1", "b1"):
        (folder / name).write_bytes(CONTENT)
    known = {"f1": file("f1", name="résumé.txt"), "f2": file("f2", name="..")}

    async def find_chat(chat_id: str) -> dict[str, Any] | None:
        return {"id": chat_id, "title": "T"} if chat_id == "c1" else None

    async def find_file(file_id: str) -> Any:
        return known.get(file_id)

    async def find_text(file_id: str) -> str | None:
        return "text" if file_id == "f1" else None

    paths: Any = SimpleNamespace(path=lambda file_id: folder / file_id)
    chats: Any = SimpleNamespace(find_record=find_chat)
    files: Any = SimpleNamespace(find=find_file)
    texts: Any = SimpleNamespace(find_text=find_text)
    return PersonExport(ExportParts(users, records, chats, files, texts, paths, paths))

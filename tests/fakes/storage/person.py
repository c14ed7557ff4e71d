"""A person with something of each kind in an assembled gateway."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from gatewayd import ids
from gatewayd.accounts.records import NewUser, Role, User
from gatewayd.assembly.services import GatewayServices
from gatewayd.batches.files import INPUT_PURPOSE, FileWishes
from gatewayd.catalog.records import Grant, ModelRecord
from gatewayd.chats.records import ChatFolder, MessageState
from gatewayd.ingest.upload import NewFile
from gatewayd.limits.records import LimitSubject
from gatewayd.limits.service import LimitTarget
from gatewayd.metering.usage_records import UsageKey, UsageSums
from gatewayd.pipeline.responses.archive import ArchiveBounds, StoredResponse
from gatewayd.resumption.records import StreamRecord, StreamState
from gatewayd.storage.collections import TortoiseCollections
from gatewayd.storage.folders import TortoiseFolders
from gatewayd.storage.limits.usage import TortoiseUsage
from gatewayd.storage.models import TortoiseModels
from gatewayd.storage.responses.stored import TortoiseResponses
from gatewayd.storage.resumption.streams import TortoiseStreams
from gatewayd.storage.tables.accounts import ResponseIdRow, RevocationRow
from gatewayd.storage.tables.nodes import AnswerRunRow
from gatewayd.storage.tables.plugins import UserValvesRow
from gatewayd.storage.tables.streams import IdempotentRequestRow
from gatewayd.tasks import TaskOwner
from tests.fakes.documents.collections import once
from tests.fakes.documents.records import collection, link
from tests.fakes.storage.records import chat, message

DAY = "2026-11-24"


@dataclass
class Person:
    """A filled account: the paths of the bytes of files, and the id of the task of a running answer."""

    user: User
    paths: list[Path] = field(default_factory=list)
    task_id: str = ""


async def fill_person(services: GatewayServices, name: str, role: Role = Role.USER) -> Person:
    """Make an account with everything; ids begin with its name."""
    user = await services.accounts.users.create(NewUser(f"{name}@example.org", name.title(), role))
    person = Person(user)
    chats = services.live.stores.chats
    await chats.add(
        chat(f"{name}-c1", user.id, title="Ä chat"), [message("m1"), message("m2", "m1", role="assistant")]
    )
    await chats.add(chat(f"{name}-c2", user.id), [message("m1", state=MessageState.RUNNING)])
    await TortoiseFolders().add(ChatFolder(f"{name}-f", user.id, "Folder", data={"files": []}))
    await _fill_files(services, person, name)
    await _fill_rows(user, name)
    target = LimitTarget(LimitSubject.USER, user.id, user.email)
    await services.limits.limits.set(target, {"parallel": 9})
    person.task_id = services.tasks.spawn("answer", asyncio.sleep(600), TaskOwner(user.id, f"{name}-c2"))
    return person


def bytes_of(services: GatewayServices, key: str) -> Path:
    """Return the path of bytes in the directory of the daemon, which has them."""
    path: Path = services.documents.stores.blobs.path(key)  # type: ignore[attr-defined]
    assert path.exists()
    return path


async def _fill_files(services: GatewayServices, person: Person, name: str) -> None:
    user, collections = person.user, TortoiseCollections()
    for place in range(3):
        new = NewFile(f"{place}.txt", "text/plain", user.id, {}, process=False, id=f"{name}-file-{place}")
        file = await services.documents.files.uploads.keep(new, once(f"{name} {place}".encode()))
        person.paths.append(bytes_of(services, file.blob_key))
    await collections.add(collection(f"{name}-k", user_id=user.id, name=f"{name}'s"))
    await collections.add(collection(f"{name}-team", user_id="boss", name=f"{name}'s team"))
    await collections.link(link(f"{name}-k", f"{name}-file-0", user_id=user.id))
    await collections.link(link(f"{name}-team", f"{name}-file-1", user_id=user.id))
    files = services.batches.batches.files
    stored = await files.upload(user.id, "in.jsonl", once(b"{}"), lambda: FileWishes(INPUT_PURPOSE))
    person.paths.append(services.documents.file_stores.batches.path(stored.id))  # type: ignore[attr-defined]


async def _fill_rows(user: User, name: str) -> None:
    grants = (Grant("user", user.id, "read"), Grant("user", "*", "read"))
    await TortoiseModels().put(ModelRecord(f"{name}-m", user.id, "M", grants=grants))
    keys = [UsageKey(DAY, user.id, key, "m", "p", "chat") for key in ("k1", "k2")]
    await TortoiseUsage().add({key: UsageSums(2, prompt=3) for key in keys})
    response = StoredResponse(f"{name}-r", user.id, "m", {"id": f"{name}-r"}, [], ids.now(), ids.now() + 999)
    await TortoiseResponses().add(response, ArchiveBounds())
    record = StreamRecord(f"{name}-s", user.id, "openai", StreamState.COMPLETE, 1, ended_at=2)
    await TortoiseStreams().write([record], [])
    await IdempotentRequestRow.create(
        digest=f"{name}-d", user_id=user.id, fingerprint="f", reply="x", created_at=ids.now()
    )
    await ResponseIdRow.create(digest=f"{name}-i", user_id=user.id, created_at=1)
    await RevocationRow.create(jti=f"{name}-j", user_id=user.id, expires_at=2**40)
    await AnswerRunRow.create(
        id=sum(name.encode()),
        task_id=f"{name}-t",
        user_id=user.id,
        chat_id=f"{name}-c2",
        message_id="m1",
        node_id="n1",
        is_stopped=False,
        started_at=1,
    )
    await UserValvesRow.create(user_id=user.id, family="function", plugin_id="f", valves="{}")

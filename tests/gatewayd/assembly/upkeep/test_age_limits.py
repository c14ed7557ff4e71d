"""Tests for gatewayd.assembly.upkeep.age_limits: the limits of the settings over the real services."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gatewayd import ids
from gatewayd.accounts.records import NewUser, Role
from gatewayd.assembly.gateway import assemble, reload
from gatewayd.assembly.upkeep.garbage import make_garbage
from gatewayd.ingest.upload import NewFile
from gatewayd.privacy.age_limits import CHATS, DAY_SECONDS, FILES
from tests.fakes.documents.collections import once
from tests.fakes.storage.records import chat
from tests.gatewayd.assembly.test_gateway import settings_for

OLD = ids.now() - 40 * DAY_SECONDS


async def test_old_chats_and_files_are_collected_once_a_limit_is_set(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncExitStack() as stack:
        gateway = await assemble(settings_for(state), stack)
        services = gateway.services
        ada = await services.accounts.users.create(NewUser("ada@example.org", "Ada", Role.USER))
        chats = services.live.stores.chats
        await chats.add(chat("old", ada.id, updated_at=OLD), [])
        await chats.add(chat("new", ada.id, updated_at=ids.now()), [])
        uploads = services.documents.files.uploads
        monkeypatch.setattr(uploads, "_clock", lambda: OLD)
        file = await uploads.keep(NewFile("a.bin", None, ada.id, {}, process=False), once(b"bytes"))
        path = services.documents.stores.blobs.path(file.id)
        garbage = make_garbage(services)
        found = {each.kind: each.count for each in await garbage.collect()}
        assert (found[CHATS], found[FILES]) == (0, 0)
        await reload(gateway, settings_for(state, CHAT_MAX_AGE_DAYS="30", FILE_MAX_AGE_DAYS="30"))
        found = {each.kind: each.count for each in await garbage.find()}
        assert (found[CHATS], found[FILES], path.exists()) == (1, 1, True)
        found = {each.kind: each.count for each in await garbage.collect()}
        assert (found[CHATS], found[FILES], path.exists()) == (1, 1, False)
        assert await chats.find("old") is None
        assert await chats.find("new") is not None

"""Tests for gatewayd.privacy.age_limits: what is deleted, what is left, and what the audit log says."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from gatewayd.audit.trail import AuditTrail
from gatewayd.privacy.age_limits import (
    CHATS,
    DAY_SECONDS,
    FILES,
    USAGE,
    AgedStores,
    AgeLimitKeeper,
    AgeLimits,
)
from gatewayd.tasks import TaskOwner, TaskRegistry
from tests.fakes.accounts.memory_stores import Memory
from tests.fakes.storage.memory_audit import MemoryAuditLog

NOW = 100 * DAY_SECONDS


class AgedHouse:
    """Chats and files with the days on which they were changed, rows of usage by day, and the keeper."""

    def __init__(self) -> None:
        self.chats = {"a": 10, "b": 20, "c": 95}
        self.files = {"f": 10, "g": 20, "linked": 5}
        self.usage = ["1970-01-20", "1970-04-05"]
        self.hidden: list[str] = []
        self.tasks, self.log = TaskRegistry(), MemoryAuditLog()
        self.trail = AuditTrail(self.log)
        stores = AgedStores(self, self, self, Memory())
        self.keeper = AgeLimitKeeper(stores, self.tasks, self.trail, AgeLimits(), lambda: NOW)

    async def old_chats(self, before: int) -> AsyncIterator[str]:
        for chat_id in _old(self.chats, before):
            yield chat_id

    async def hide_old_chat(self, chat_id: str, before: int) -> bool:
        if chat_id not in _old(self.chats, before):
            return False
        del self.chats[chat_id]
        self.hidden.append(chat_id)
        return True

    async def purge(self, chat_ids: Sequence[str]) -> None:
        for chat_id in chat_ids:
            self.hidden.remove(chat_id)

    async def old_files(self, before: int) -> AsyncIterator[str]:
        for file_id in _old(self.files, before):
            yield file_id

    async def is_old_file(self, file_id: str, before: int) -> bool:
        return file_id in _old(self.files, before)

    async def remove(self, file_id: str, *, unused: bool = False) -> bool:
        assert unused
        return file_id != "linked" and self.files.pop(file_id) > 0

    async def count_usage(self, day: str) -> int:
        return len([each for each in self.usage if each < day])

    async def remove_usage(self, day: str) -> int:
        count = await self.count_usage(day)
        self.usage = self.usage[count:]
        return count


def _old(changed: dict[str, int], before: int) -> list[str]:
    return [name for name, day in changed.items() if day * DAY_SECONDS < before]


@pytest.fixture
def house() -> AgedHouse:
    return AgedHouse()


async def test_nothing_is_deleted_without_a_limit(house: AgedHouse) -> None:
    for rows in house.keeper.kinds().values():
        assert (await rows.count(), await rows.prune()) == (0, 0)
    assert (len(house.chats), len(house.files), len(house.usage)) == (3, 3, 2)
    await house.trail.drain(0)
    assert house.log.kept == []


async def test_the_old_is_deleted_and_counted_in_the_audit_log(house: AgedHouse) -> None:
    house.keeper.limits = AgeLimits(chats=50, files=85, usage=30)
    kinds = house.keeper.kinds()
    assert [await rows.count() for rows in kinds.values()] == [2, 2, 1]
    assert {name: await rows.prune() for name, rows in kinds.items()} == {CHATS: 2, FILES: 1, USAGE: 1}
    assert (house.chats, house.hidden) == ({"c": 95}, [])
    assert (house.files, house.usage) == ({"g": 20, "linked": 5}, ["1970-04-05"])
    task = asyncio.ensure_future(house.trail.run())
    await house.trail.drain(1)
    task.cancel()
    assert [(row.action, row.after) for row in house.log.kept] == [
        ("old chats deleted", {"count": 2, "days": 50}),
        ("old files deleted", {"count": 1, "days": 85}),
        ("old rows of usage deleted", {"count": 1, "days": 30}),
    ]


async def test_a_chat_with_a_running_answer_is_left(house: AgedHouse) -> None:
    house.keeper.limits = AgeLimits(chats=50)
    task_id = house.tasks.spawn("answer", asyncio.sleep(60), TaskOwner("u1", "a"))
    assert await house.keeper.prune_chats() == 1
    assert set(house.chats) == {"a", "c"}
    await house.tasks.stop(task_id)
    assert await house.keeper.prune_chats() == 1


async def test_a_limit_longer_than_time_itself_deletes_nothing(house: AgedHouse) -> None:
    house.keeper.limits = AgeLimits(36_500, 36_500, 36_500)
    assert [await rows.prune() for rows in house.keeper.kinds().values()] == [0, 0, 0]

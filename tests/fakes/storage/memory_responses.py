"""Stored responses in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import orjson

from gatewayd.metering.usage_records import UsageKey, UsageSums
from gatewayd.pipeline.responses.archive import ArchiveBounds, StoredResponse


class MemoryResponses:
    """Implements `pipeline.responses.archive.StoredResponses`."""

    def __init__(self) -> None:
        self.kept: dict[str, StoredResponse] = {}
        self.usage: dict[UsageKey, UsageSums] = {}
        self.outage: Exception | None = None

    async def add(self, response: StoredResponse, bounds: ArchiveBounds) -> bool:
        if self.outage is not None:
            raise self.outage
        if _size(response) > bounds.user_bytes or response.id in self.kept:
            return False
        self.kept[response.id] = response
        own = [each for each in self.kept.values() if each.user_id == response.user_id]
        total = 0
        newest = sorted(own, key=lambda each: (each.created_at, each.id), reverse=True)
        for place, each in enumerate(newest, 1):
            total += _size(each)
            if total > bounds.user_bytes or place > bounds.user_responses:
                del self.kept[each.id]
        return True

    async def replace(self, response: StoredResponse, bounds: ArchiveBounds) -> bool:
        if response.id not in self.kept or _size(response) > bounds.user_bytes:
            return False
        del self.kept[response.id]
        return await self.add(response, bounds)

    async def settle(self, response: StoredResponse, usage: Mapping[UsageKey, UsageSums]) -> bool:
        if self.outage is not None:
            raise self.outage
        kept = self.kept.get(response.id)
        if kept is None or kept.user_id != response.user_id or not kept.source or not kept.response:
            return False
        self.kept[kept.id] = replace(kept, response={})
        for key, sums in usage.items():
            self.usage.setdefault(key, UsageSums()).add(sums)
        return True

    async def find(self, response_id: str) -> StoredResponse | None:
        return self.kept.get(response_id)

    async def chain(self, response_id: str, most: int) -> Sequence[StoredResponse]:
        found: list[StoredResponse] = []
        one = self.kept.get(response_id)
        while one is not None and len(found) < most:
            found.insert(0, one)
            before = self.kept.get(one.previous_id or "")
            one = before if before is not None and before.user_id == one.user_id else None
        return found

    async def renew(self, response_ids: Sequence[str], expires_at: int) -> None:
        for each in response_ids:
            if each in self.kept and self.kept[each].expires_at < expires_at:
                self.kept[each] = replace(self.kept[each], expires_at=expires_at)

    async def remove(self, response_id: str) -> bool:
        return self.kept.pop(response_id, None) is not None

    async def prune(self, before: int) -> int:
        expired = [each.id for each in self.kept.values() if each.expires_at < before]
        for each in expired:
            del self.kept[each]
        return len(expired)


def _size(response: StoredResponse) -> int:
    parts = (response.response, response.input, [response.pieces, response.pings])
    return sum(len(orjson.dumps(part)) for part in parts)

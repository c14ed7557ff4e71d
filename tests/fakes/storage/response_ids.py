"""Who received which id of a provider, in memory."""

from collections.abc import Mapping, Sequence


class MemoryResponseIds:
    """Implements `chat.interfaces.ResponseIdStore`."""

    def __init__(self) -> None:
        self.kept: dict[str, tuple[str, int]] = {}
        self.outage: Exception | None = None

    async def add(self, digests: Sequence[str], user_id: str, at: int) -> None:
        self._fail()
        for digest in digests:
            self.kept.setdefault(digest, (user_id, at))

    async def owners(self, digests: Sequence[str]) -> Mapping[str, str]:
        self._fail()
        return {digest: self.kept[digest][0] for digest in digests if digest in self.kept}

    async def prune(self, before: int, most: int) -> int:
        kept: dict[str, tuple[str, int]] = {}
        counts: dict[str, int] = {}
        for digest, (user_id, at) in sorted(self.kept.items(), key=lambda item: (-item[1][1], item[0])):
            counts[user_id] = counts.get(user_id, 0) + 1
            if at >= before and counts[user_id] <= most:
                kept[digest] = (user_id, at)
        gone = len(self.kept) - len(kept)
        self.kept = kept
        return gone

    def _fail(self) -> None:
        if self.outage is not None:
            raise self.outage

"""Sizes of files in memory."""

from collections.abc import Sequence


class MemorySizes:
    """Implements `limits.interfaces.StorageSizes`: the sizes of files by owner, and the groups of users."""

    def __init__(self) -> None:
        self.files: list[tuple[str, int]] = []
        self.groups: dict[str, list[str]] = {}
        self.reads = 0

    async def groups_of(self, user_id: str) -> Sequence[str]:
        return self.groups.get(user_id, ())

    async def stored_bytes(self, *, user_id: str | None = None, group_id: str | None = None) -> int:
        self.reads += 1
        return sum(
            size
            for owner, size in self.files
            if user_id in (None, owner) and (group_id is None or group_id in self.groups.get(owner, ()))
        )

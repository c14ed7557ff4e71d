"""The invalidation map: what a change of each kind means for what this process remembers."""

from collections.abc import Awaitable, Callable, Iterable, Set
from typing import Final

from gatewayd.cluster.records import Change, ChangeKind

ALL: Final = ""
"""The subject that stands for all of a kind."""

Drop = Callable[[str], None]
"""Forgets what is remembered of a subject, or of all for ALL, at once."""

Changed = Set[tuple[ChangeKind, str]]
Reload = Callable[[Changed], Awaitable[None]]
"""Reads again what is always in memory, for kinds and subjects."""


class InvalidationMap:
    """The caches by the kinds of changes that they depend on.

    A drop is synchronous and takes effect with the change. A reload is awaited before the node counts as
    fresh; one that fails is repeated. The assembly registers both before the first change is applied.
    """

    def __init__(self) -> None:
        self._drops: dict[ChangeKind, list[Drop]] = {}
        self._reloads: dict[ChangeKind, list[Reload]] = {}
        self._stale: dict[Reload, set[tuple[ChangeKind, str]]] = {}
        self.unknown = 0
        """Number of changes of kinds that this version does not know."""

    def drop(self, kinds: Iterable[ChangeKind], forget: Drop) -> None:
        """Call `forget` with the subject of each change of these kinds."""
        for kind in kinds:
            self._drops.setdefault(kind, []).append(forget)

    def reload(self, kinds: Iterable[ChangeKind], read: Reload) -> None:
        """Await `read` after changes of these kinds."""
        for kind in kinds:
            self._reloads.setdefault(kind, []).append(read)

    def apply(self, changes: Iterable[Change]) -> None:
        """Apply changes in their order."""
        for change in changes:
            try:
                kind = ChangeKind(change.kind)
            except ValueError:
                self.unknown += 1
                continue
            self._apply(kind, change.subject)

    def clear(self) -> None:
        """Forget everything: each change may have been missed."""
        for kind in ChangeKind:
            self._apply(kind, ALL)

    async def refresh(self) -> None:
        """Read again what changed since the last call that succeeded."""
        while self._stale:
            read, changed = self._stale.popitem()
            is_read = False
            try:
                await read(frozenset(changed))
                is_read = True
            finally:
                if not is_read:
                    self._stale.setdefault(read, set()).update(changed)

    def _apply(self, kind: ChangeKind, subject: str) -> None:
        for read in self._reloads.get(kind, ()):
            self._stale.setdefault(read, set()).add((kind, subject))
        for forget in self._drops.get(kind, ()):
            forget(subject)


def subjects(changed: Changed) -> frozenset[str] | None:
    """Return the subjects of changes, None for all."""
    found = frozenset(subject for _, subject in changed)
    return None if ALL in found else found

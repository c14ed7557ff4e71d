"""Which scopes stay in memory: the last used ones, up to so many bytes and graphs."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from gatewayd.ingest.records import EmbeddingSpace, SearchScope
from gatewayd.vectors.index.checkpoints import CheckpointKey
from gatewayd.vectors.index.reloads import ReloadWatch
from gatewayd.vectors.index.scope_index import ScopeIndex


class ScopeCache:
    """Loaded scopes in the order of their use. Their sizes are known as of the last `measure`."""

    def __init__(self, budget: int, graphs: int, reloads: ReloadWatch) -> None:
        self._budget = budget
        self._reloads = reloads
        self._graphs = graphs
        self._held: OrderedDict[CheckpointKey, ScopeIndex] = OrderedDict()
        self._sizes: dict[CheckpointKey, tuple[int, bool]] = {}
        self._size = 0
        self._with_graph = 0
        self._spaces: set[EmbeddingSpace] = set()

    def __iter__(self) -> Iterator[ScopeIndex]:
        return iter(list(self._held.values()))

    def __contains__(self, loaded: ScopeIndex) -> bool:
        return self._held.get(loaded.key) is loaded

    @property
    def size(self) -> int:
        """Bytes of memory that the scopes take."""
        return self._size

    def find(self, key: CheckpointKey) -> ScopeIndex | None:
        """Return a loaded scope, which is the last used one now."""
        loaded = self._held.get(key)
        if loaded is not None:
            self._held.move_to_end(key)
        return loaded

    def put(self, loaded: ScopeIndex) -> None:
        """Hold a scope that is not held and is about to be loaded, as the last used one."""
        self._reloads.load(loaded.key)
        self._held[loaded.key] = loaded
        self._spaces.add(loaded.key.space)

    def of(self, scope: SearchScope) -> Sequence[ScopeIndex]:
        """Return what is loaded of a scope, in any space."""
        keys = (CheckpointKey(space, scope) for space in self._spaces)
        return [self._held[key] for key in keys if key in self._held]

    def take(self, loaded: ScopeIndex) -> None:
        """Hold a scope no longer; nothing when it is not held."""
        if loaded in self:
            del self._held[loaded.key]
            self._count(loaded.key, 0, has_graph=False)
            del self._sizes[loaded.key]

    def measure(self, loaded: ScopeIndex) -> Sequence[ScopeIndex]:
        """Learn the size of a scope; let go of what was not used for longest until the rest fits.

        The last used one stays in any case, and those that are being loaded, so that whoever wants one waits
        for the same. Returns those that are no longer held.
        """
        if loaded in self:
            self._count(loaded.key, loaded.size, has_graph=loaded.has_graph)
        gone: list[ScopeIndex] = []
        last = next(reversed(self._held.values()), None)
        for oldest in self if self._is_full else ():
            if not self._is_full:
                break
            if oldest is last or not oldest.is_ready:
                continue
            if self._size > self._budget:
                other = last if last is not None and (loaded is oldest or loaded not in self) else loaded
                self._reloads.let_go(oldest.key, oldest.size, other.key, other.size)
            self.take(oldest)
            gone.append(oldest)
        return gone

    @property
    def _is_full(self) -> bool:
        return self._size > self._budget or self._with_graph > self._graphs

    def _count(self, key: CheckpointKey, size: int, *, has_graph: bool) -> None:
        before, had_graph = self._sizes.get(key, (0, False))
        self._size += size - before
        self._with_graph += has_graph - had_graph
        self._sizes[key] = size, has_graph

"""LRU cache of loaded scopes, limited by bytes of memory and by number of HNSW graphs."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from gatewayd.ingest.records import EmbeddingSpace, SearchScope
from gatewayd.vectors.index.checkpoints import CheckpointKey
from gatewayd.vectors.index.eviction_watch import ReloadWatch
from gatewayd.vectors.index.scope_index import ScopeIndex


class ScopeCache:
    """Loaded scopes, least recently used first. `measure` updates their sizes."""

    def __init__(self, budget: int, max_graphs: int, reloads: ReloadWatch) -> None:
        self._budget = budget
        self._reloads = reloads
        self._max_graphs = max_graphs
        self._scopes: OrderedDict[CheckpointKey, ScopeIndex] = OrderedDict()
        self._sizes: dict[CheckpointKey, tuple[int, bool]] = {}
        self._size = 0
        self._with_graph = 0
        self._spaces: set[EmbeddingSpace] = set()

    def __iter__(self) -> Iterator[ScopeIndex]:
        return iter(list(self._scopes.values()))

    def __contains__(self, loaded: ScopeIndex) -> bool:
        return self._scopes.get(loaded.key) is loaded

    @property
    def size(self) -> int:
        """Bytes of memory that the scopes take."""
        return self._size

    def find(self, key: CheckpointKey) -> ScopeIndex | None:
        """Return a loaded scope and mark it as most recently used."""
        loaded = self._scopes.get(key)
        if loaded is not None:
            self._scopes.move_to_end(key)
        return loaded

    def put(self, loaded: ScopeIndex) -> None:
        """Add a scope that is about to be loaded, as the most recently used one."""
        self._reloads.note_load(loaded.key)
        self._scopes[loaded.key] = loaded
        self._spaces.add(loaded.key.space)

    def of(self, scope: SearchScope) -> Sequence[ScopeIndex]:
        """Return the loaded indexes of a scope, in every embedding space."""
        keys = (CheckpointKey(space, scope) for space in self._spaces)
        return [self._scopes[key] for key in keys if key in self._scopes]

    def remove(self, loaded: ScopeIndex) -> None:
        """Remove a scope; do nothing if the cache does not hold it."""
        if loaded in self:
            del self._scopes[loaded.key]
            self._count(loaded.key, 0, has_graph=False)
            del self._sizes[loaded.key]

    def measure(self, loaded: ScopeIndex) -> Sequence[ScopeIndex]:
        """Update the size of a scope, then evict the least recently used scopes until the rest fits.

        The most recently used scope is never evicted, nor is a scope that is being loaded: concurrent queries
        wait for the same load. Returns the evicted scopes.
        """
        if loaded in self:
            self._count(loaded.key, loaded.size, has_graph=loaded.has_graph)
        evicted: list[ScopeIndex] = []
        last = next(reversed(self._scopes.values()), None)
        for oldest in self if self._is_full else ():
            if not self._is_full:
                break
            if oldest is last or not oldest.is_ready:
                continue
            if self._size > self._budget:
                other = last if last is not None and (loaded is oldest or loaded not in self) else loaded
                self._reloads.note_eviction(oldest.key, oldest.size, other.key, other.size)
            self.remove(oldest)
            evicted.append(oldest)
        return evicted

    @property
    def _is_full(self) -> bool:
        return self._size > self._budget or self._with_graph > self._max_graphs

    def _count(self, key: CheckpointKey, size: int, *, has_graph: bool) -> None:
        before, had_graph = self._sizes.get(key, (0, False))
        self._size += size - before
        self._with_graph += has_graph - had_graph
        self._sizes[key] = size, has_graph

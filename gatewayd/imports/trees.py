"""Trees whose parents may be missing or form circles."""

from collections.abc import Collection, Mapping


def mend_tree(parents: Mapping[str, str | None]) -> tuple[dict[str, str | None], frozenset[str]]:
    """Return the parents of a tree without circles, and the nodes that became roots for it.

    A parent that is absent makes a root, too. Takes linear time.
    """
    mended = {node: parent if parent in parents else None for node, parent in parents.items()}
    cut = {node for node, parent in parents.items() if parent and mended[node] is None}
    done: set[str] = set()
    for start in mended:
        line: dict[str, None] = {}
        node: str | None = start
        while node is not None and node not in done:
            if node in line:
                mended[node] = None
                cut.add(node)
                break
            line[node] = None
            node = mended[node]
        done |= line.keys()
    return mended, frozenset(cut)


def without_nodes(parents: Mapping[str, str | None], left_out: Collection[str]) -> dict[str, str | None]:
    """Return a mended tree without some nodes, whose children go to the nearest node above that stays."""
    kept: dict[str, str | None] = {}
    for node, parent in parents.items():
        if node in left_out:
            continue
        while parent is not None and parent in left_out:
            parent = parents[parent]
        kept[node] = parent
    return kept


def roots_first(parents: Mapping[str, str | None]) -> list[str]:
    """Return the nodes of a mended tree so that each comes after its parent."""
    found: dict[str, None] = {}
    for start in parents:
        line = []
        node: str | None = start
        while node is not None and node not in found:
            line.append(node)
            node = parents[node]
        found |= dict.fromkeys(reversed(line))
    return list(found)

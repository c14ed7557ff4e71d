"""Trees without circles, whatever the parents were."""

from hypothesis import given
from hypothesis import strategies as st

from gatewayd.imports.trees import mend_tree, roots_first, without_nodes

NODES = st.sampled_from("abcdefgh")
PARENTS = st.dictionaries(NODES, st.none() | NODES | st.just("gone"), max_size=8)


def test_circles_are_cut_at_one_node() -> None:
    assert mend_tree({"a": "b", "b": "a", "c": "b", "d": "d"}) == (
        {"a": None, "b": "a", "c": "b", "d": None},
        {"a", "d"},
    )
    assert mend_tree({"a": None, "b": "gone", "c": ""}) == ({"a": None, "b": None, "c": None}, {"b"})


def test_a_long_line_takes_no_recursion() -> None:
    line = {str(n): str(n - 1) if n else None for n in range(50_000)}
    assert mend_tree(line) == (line, frozenset())
    assert roots_first(dict(reversed(line.items()))) == list(line)


@given(PARENTS)
def test_every_node_has_a_root_above_it(parents: dict[str, str | None]) -> None:
    mended, cut = mend_tree(parents)
    assert mended.keys() == parents.keys()
    for node, parent in parents.items():
        assert mended[node] == (None if node in cut else parent)
        at, steps = mended[node], 0
        while at is not None:
            at, steps = mended[at], steps + 1
            assert steps <= len(parents)
    order = roots_first(mended)
    assert sorted(order) == sorted(parents)
    for node in order:
        parent = mended[node]
        assert parent is None or order.index(parent) < order.index(node)


@given(PARENTS, st.sets(NODES))
def test_children_of_what_is_left_out_move_up(parents: dict[str, str | None], left_out: set[str]) -> None:
    mended, _ = mend_tree(parents)
    kept = without_nodes(mended, left_out)
    assert kept.keys() == parents.keys() - left_out
    assert not {parent for parent in kept.values() if parent is not None} & left_out
    assert mend_tree(kept) == (kept, frozenset())

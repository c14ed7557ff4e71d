"""Tests for gatewayd.knowledge.paths."""

import pytest

from gatewayd.errors import GatewayError, Kind
from gatewayd.knowledge.paths import ancestors, joined, line_to, normal_path, paths_of, subtree
from gatewayd.knowledge.records import Directory


def directory(key: str, parent: str | None, name: str | None = None) -> Directory:
    return Directory(key, "c", parent, name or key, "ann")


def test_paths_whatever_the_order() -> None:
    known = [directory("c", "b"), directory("b", "a"), directory("a", None), directory("x", None)]
    assert paths_of(known) == {"a": "a", "b": "a/b", "c": "a/b/c", "x": "x"}


def test_paths_of_a_broken_tree_end() -> None:
    known = [directory("lost", "nowhere"), directory("one", "two"), directory("two", "one")]
    paths = paths_of(known)
    assert paths["lost"] == "lost"
    assert paths.keys() == {"lost", "one", "two"}


def test_the_line_to_a_directory() -> None:
    known = [directory("c", "b"), directory("b", "a"), directory("a", None), directory("x", None)]
    assert [each.id for each in line_to(known, "c")] == ["a", "b", "c"]
    assert line_to(known, None) == []
    assert len(line_to([directory("one", "two"), directory("two", "one")], "one")) == 2
    with pytest.raises(GatewayError) as caught:
        line_to(known, "gone")
    assert caught.value.kind is Kind.NOT_FOUND


def test_subtree_has_the_parents_first() -> None:
    parents = {"c": "b", "b": "a", "a": None, "x": None}
    assert subtree(parents, ["a"]) == ["a", "b", "c"]
    assert subtree({"one": "two", "two": "one"}, ["one"]) == ["one", "two"]


def test_subtrees_have_each_directory_once() -> None:
    parents = {"c": "b", "b": "a", "a": None, "x": None}
    assert subtree(parents, ["b", "x", "a", "b", "gone"]) == ["b", "x", "a", "c"]
    assert subtree(parents, []) == []


def test_large_trees_take_no_time_to_speak_of() -> None:
    wide = {"top": None, **{f"d{n}": "top" for n in range(50_000)}}
    assert len(subtree(wide, ["top"])) == 50_001
    deep = [directory(f"d{n}", f"d{n - 1}" if n else None, "x") for n in reversed(range(2000))]
    assert len(paths_of(deep)["d1999"]) == 3999


def test_ancestors() -> None:
    assert ancestors("") == []
    assert ancestors("a/b/c") == ["a", "a/b", "a/b/c"]
    assert joined("", "n") == "n"
    assert joined("a/b", "n") == "a/b/n"


@pytest.mark.parametrize(
    ("given", "expected"), [("", ""), ("/a//b/", "a/b"), ("a", "a"), ("u\u0308", "\u00fc")]
)
def test_normal_path(given: str, expected: str) -> None:
    assert normal_path(given, "path") == expected


@pytest.mark.parametrize("bad", ["..", "a/../b", "./a", "a\x00b", "a\nb", "x" * 5000, "\ud800"])
def test_bad_paths_are_refused_by_name(bad: str) -> None:
    with pytest.raises(GatewayError) as caught:
        normal_path(bad, "path")
    assert caught.value.param == "path"

"""Tests for gatewayd.knowledge.paths."""

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.knowledge.paths import (
    ancestor_directories,
    ancestor_paths,
    directory_paths,
    join_path,
    normalise_path,
    subtree,
)
from gatewayd.knowledge.records import CollectionDirectory


def directory(key: str, parent: str | None, name: str | None = None) -> CollectionDirectory:
    return CollectionDirectory(key, "c", parent, name or key, "ann")


def test_paths_whatever_the_order() -> None:
    known = [directory("c", "b"), directory("b", "a"), directory("a", None), directory("x", None)]
    assert directory_paths(known) == {"a": "a", "b": "a/b", "c": "a/b/c", "x": "x"}


def test_paths_of_a_broken_tree_end() -> None:
    known = [directory("lost", "nowhere"), directory("one", "two"), directory("two", "one")]
    paths = directory_paths(known)
    assert paths["lost"] == "lost"
    assert paths.keys() == {"lost", "one", "two"}


def test_the_line_to_a_directory() -> None:
    known = [directory("c", "b"), directory("b", "a"), directory("a", None), directory("x", None)]
    assert [each.id for each in ancestor_directories(known, "c")] == ["a", "b", "c"]
    assert ancestor_directories(known, None) == []
    assert len(ancestor_directories([directory("one", "two"), directory("two", "one")], "one")) == 2
    with pytest.raises(GatewayError) as caught:
        ancestor_directories(known, "gone")
    assert caught.value.kind is ErrorKind.NOT_FOUND


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
    assert len(directory_paths(deep)["d1999"]) == 3999


def test_ancestors() -> None:
    assert ancestor_paths("") == []
    assert ancestor_paths("a/b/c") == ["a", "a/b", "a/b/c"]
    assert join_path("", "n") == "n"
    assert join_path("a/b", "n") == "a/b/n"


@pytest.mark.parametrize(
    ("given", "expected"), [("", ""), ("/a//b/", "a/b"), ("a", "a"), ("u\u0308", "\u00fc")]
)
def test_normal_path(given: str, expected: str) -> None:
    assert normalise_path(given, "path") == expected


@pytest.mark.parametrize("bad", ["..", "a/../b", "./a", "a\x00b", "a\nb", "x" * 5000, "\ud800"])
def test_bad_paths_are_refused_by_name(bad: str) -> None:
    with pytest.raises(GatewayError) as caught:
        normalise_path(bad, "path")
    assert caught.value.param == "path"

"""Tests for gatewayctl.events.citations."""

from typing import Any

import pytest

from gatewayctl.events.citations import MAX_PAGES, MAX_PATHS, citations, is_execution


def passage(place: str, **more: Any) -> dict[str, Any]:
    return {"source": place, "name": "README.md", **more}


@pytest.mark.parametrize(
    ("sources", "names"),
    [
        ([], []),
        (
            [{"source": {"name": "a"}, "metadata": [{"source": "f1", "name": "one"}, {"source": "f1"}]}],
            ["one"],
        ),
        (
            [{"source": {"id": "x", "name": "a"}, "metadata": [{}]}, {"source": {"id": "x"}}],
            ["a"],
        ),
        ([{"source": {"name": "a"}}, {"source": {"name": "b"}, "metadata": []}], ["a", "b"]),
        (["odd", {"source": "odd", "metadata": ["odd"]}], ["N/A"]),
        ([{"type": "code_execution", "id": "1", "name": "x"}, {"source": {"name": "a"}}], ["a"]),
    ],
)
def test_citations_are_numbered_as_in_the_answer(sources: list[Any], names: list[str]) -> None:
    assert citations(sources) == names


def test_a_citation_tells_path_and_pages() -> None:
    first = {
        "source": {"type": "collection", "id": "c1", "name": "HANDBOOK"},
        "metadata": [
            passage("f1", path="a/README.md", page_label="3"),
            passage("f2", path="b/README.md"),
            passage("f1", path="a/README.md", page_label="5"),
            passage("f1", path="a/README.md", page_label="3"),
        ],
    }
    second = {"source": {"id": "f2"}, "metadata": [passage("f2", page_label="1"), passage("f3", path=7)]}
    assert citations([first, second]) == [
        "README.md (a/README.md), pages 3, 5",
        "README.md (b/README.md), page 1",
        "README.md",
    ]


def test_files_of_one_name_are_told_apart_by_their_ids() -> None:
    files = [{"source": {"type": "file", "id": one}, "metadata": [passage(one)]} for one in ("f1", "f2")]
    paged = {"metadata": [passage("f3", page_label="2")]}
    assert citations([*files, paged]) == ["README.md (f1)", "README.md (f2)", "README.md (f3), page 2"]
    same = [passage("f1", path="a/README.md"), passage("f2", path="a/README.md"), passage("f3")]
    assert citations([{"metadata": same}]) == [
        "README.md (a/README.md) (f1)",
        "README.md (a/README.md) (f2)",
        "README.md",
    ]
    # A web page, which has no id beside a file that has one.
    assert citations([{"metadata": [passage("README.md"), passage("f1")]}]) == ["README.md", "README.md (f1)"]


def test_a_file_in_several_collections_is_told_with_all_its_paths() -> None:
    sources = [
        {"source": {"id": one}, "metadata": [passage("f1", path=f"{one}/README.md"), passage("f2", path=one)]}
        for one in ("a", "b")
    ]
    assert citations(sources) == ["README.md (a/README.md, b/README.md)", "README.md (a, b)"]
    assert citations([{"metadata": [passage("f1", path="README.md")]}]) == ["README.md"]


def test_the_paths_of_a_citation_are_bounded() -> None:
    paths = [passage("f1", path=f"{number}") for number in range(MAX_PATHS + 1)]
    assert citations([{"metadata": paths}]) == ["README.md (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...)"]


def test_the_pages_of_a_citation_are_bounded() -> None:
    pages = [passage("f1", path="README.md", page_label=str(page)) for page in range(1, MAX_PAGES + 2)]
    assert citations([{"metadata": pages}]) == ["README.md, pages 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ..."]


def test_a_name_neither_steers_a_terminal_nor_forges_a_line() -> None:
    hostile = {"metadata": [{"source": "f1", "name": "a\x1b[2J\n[2] b", "page_label": "\x9b"}]}
    [shown] = citations([hostile])
    assert shown == "a\\x1b[2J\\n[2] b, page \\x9b"


def test_code_that_ran_is_no_citation() -> None:
    assert is_execution({"type": "code_execution"})
    assert not is_execution({"type": "file"})
    assert not is_execution("code_execution")

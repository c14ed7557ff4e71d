"""Tests for gatewayctl.live.citations."""

from typing import Any

import pytest

from gatewayctl.live.citations import MAX_PAGES, citations, is_execution


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

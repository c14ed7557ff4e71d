"""Tests for gatewayd.extract.formats.column_names."""

import pytest

from gatewayd.extract.formats.column_names import (
    MAX_ROWS_ABOVE,
    are_column_names,
    find_header_row,
    is_comment,
)


def have_names(*lines: str) -> bool:
    """Tell whether the first of some rows, written with commas, has the names of the others."""
    first, *below = (line.split(",") for line in lines)
    return are_column_names(first, below)


@pytest.mark.parametrize(
    "lines",
    [
        ("name,city,age", "Ann,Rome,3", "Bob,Oslo,4"),
        ("name,city,city", "Ann,Rome,Oslo"),
        ("name,01/2024,02/2024", "A,1,2"),
        ("name,2024-01", "A,1"),
        ("name,2024-01,2024-02", "A,1,", "B,,2"),
        (",2024,2025", "Heron,7,2019", "Gull,8,9"),
        ("day,08:00,09:00", "Monday,3,4"),
        ("time (s),T [\u00b0C],%", "1,2,3"),
        ("name,#,qty", "A,1,2"),
        ("#,Bird", "1,Heron", "2,Gull"),
        ("Bird,Weight", "Heron,2 kg", "Gull,1 kg"),
        ("Name,Mail", "Ann,ann@example.com", "Bob,bob@example.com"),
        (
            "Question,Answer",
            "Where does the heron nest?,In the reeds of the old lake",
            "How does it fish?,It stands still in the shallows",
        ),
        ("Bird,Place", "Heron,Lake", "Gull,Sea", "Coot,Lake", "Tern,Sea"),
        ("Country,Capital", "France,Paris", "Norway,Oslo"),
        ("Bird,Count", "Heron,7", "Bird,Count", "Gull,8"),
    ],
)
def test_names_differ_from_the_values_below(lines: tuple[str, ...]) -> None:
    assert have_names(*lines)


@pytest.mark.parametrize(
    "lines",
    [
        ("Ann,Rome", "Bob,Oslo", "Eve,Rome", "Dan,Oslo", "Kim,Rome", "Joe,Oslo"),
        ("Ann,7", "Bob,8"),
        ("Ann,Rome,7", "Bob,Oslo,8"),
        ("Ann,Rome,2024-01-02", "Bob,Oslo,2024-01-03"),
        ("Ann,Rome,ann@example.com", "Bob,Oslo,bob@example.com"),
        ("Ann,Rome,5 kg", "Bob,Oslo,7 kg"),
        ("Widget,1999", "Gizmo,249"),
        ("Ann,Rome,7", "Bob,8,"),
        ("Ann,,", "Bob,7,8"),
        ("1,2,3", "4,5,6"),
        ("Bird,7.5",),
        ("Bird,Count",),
        (f"Heron,{'x' * 201}", "1,2"),
    ],
)
def test_values_are_no_names(lines: tuple[str, ...]) -> None:
    assert not have_names(*lines)


def test_notes_stand_above_the_names() -> None:
    names = [["Bird", "Count"], ["Heron", "7"]]
    assert find_header_row([["Birds"], ["# at the lake", "today"], *names]) == 2
    assert find_header_row([["Birds"]] * MAX_ROWS_ABOVE + names) == MAX_ROWS_ABOVE
    assert find_header_row([["Birds"]] * (MAX_ROWS_ABOVE + 1) + names) is None
    assert find_header_row([]) is None


def test_a_sign_alone_is_no_comment() -> None:
    assert is_comment("# at y, today")
    assert is_comment("#made by x")
    assert not is_comment("#,Bird")
    assert not is_comment("Bird #")

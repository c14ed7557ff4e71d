"""Which columns a terminal has room for, and how cells are cut."""

import pytest
from rich.cells import cell_len

from gatewayctl.columns import Column, cut, fitted, table_columns


def named(columns: list[Column] | None) -> list[str]:
    assert columns is not None
    return [column.heading for column in columns]


def test_what_says_nothing_is_left_out_first() -> None:
    columns = [
        Column("ID", ["x" * 30], True),
        Column("ERROR", ["-"], False),
        Column("TEXT", ["y" * 30], False),
    ]
    assert named(fitted(columns, 80)) == ["ID", "ERROR", "TEXT"]
    narrow = fitted(columns, 60)
    assert named(narrow) == ["ID", "TEXT"]
    assert [column.width for column in narrow or ()] == [30, 28]


def test_last_texts_go_then_last_short_values_then_the_table() -> None:
    columns = [
        Column("NAME", ["n" * 30], False),
        Column("ROLE", ["pending"], False),
        Column("STATE", ["completed"], False),
        Column("NOTE", ["word " * 9], False),
        Column("SEEN", ["2026-01-01T00:00:00Z"], False),
        Column("ID", ["x" * 36], True),
    ]
    assert named(fitted(columns, 200)) == ["NAME", "ROLE", "STATE", "NOTE", "SEEN", "ID"]
    assert named(fitted(columns, 93)) == ["NAME", "ROLE", "STATE", "NOTE", "ID"]
    assert named(fitted(columns, 80)) == ["NAME", "ROLE", "STATE", "ID"]
    assert named(fitted(columns, 70)) == ["NAME", "ROLE", "ID"]
    assert named(fitted(columns, 58)) == ["NAME", "ID"]
    assert fitted(columns, 57) is None


def test_names_stay_whole_where_there_is_no_id_and_paths_do_not() -> None:
    rows = [["one", "a"], ["two", "b"]]
    for headings, names, expected in (
        (["NAME", "STATE"], ["one", "two"], [True, False]),
        (["NAME", "OWN ID"], ["one", "two"], [False, True]),
        (["NAME", "STATE"], ["a", "b"], [False, True]),
        (["NAME", "STATE"], ["/a", "/b"], [False, False]),
    ):
        assert [column.is_whole for column in table_columns(headings, rows, names)] == expected


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("short", "short"),
        ("gateway-manual-part-7.pdf", "gatewa…7.pdf"),
        ("a sentence of more than some six words", "a sentence…"),
        ("firstname.lastname@example.org", "firstname.l…"),
        ("日本語の長い名前のファイル", "日本語…イル"),
    ],
)
def test_names_lose_their_middle_and_sentences_their_end(text: str, shown: str) -> None:
    assert cut(text, 12).replace(" ", "") == shown.replace(" ", "")
    assert cell_len(cut(text, 12)) <= 12

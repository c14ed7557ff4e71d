from gatewayd.extract.tbl import rows


def test_rows_are_told_from_formats() -> None:
    assert list(rows(["l l", "l l.", "a\tb", "_", "c\td"])) == [["a", "b"], ["c", "d"]]


def test_options_name_what_separates_cells() -> None:
    assert list(rows(["allbox tab(:);", "lB lB.", "a:b", ".T&", "l l", "l l.", "c:d"])) == [
        ["a", "b"],
        ["c", "d"],
    ]


def test_cells_go_over_lines() -> None:
    assert list(rows(["l l.", "T{", ".I one", "two", "T}\tT{", "three", "T}", ".sp"])) == [
        ["one two", "three"]
    ]


def test_nothing_gives_no_rows() -> None:
    assert list(rows([])) == []


def test_a_cell_without_end_keeps_its_words() -> None:
    assert list(rows(["l.", "T{", "one", "two"])) == [["one two"]]

import datetime

from gatewayd.extract.formats.xlsx import format_cell
from tests.fakes.documents import makers as documents
from tests.fakes.documents.readers import reading, refusal


def test_a_part_is_a_sheet_and_a_line_is_a_row() -> None:
    rows = [["Bird", "Count"], [], [None, "two\nlines", None], ["Heron", 7]]
    document = reading(documents.workbook({"Lake": rows, "Empty": [], "Sea": [["Gull"]]}))
    assert document.text == ("Sheet: Lake\nBird\tCount\n\ttwo lines\nHeron\t7\n\nSheet: Sea\nGull\n\n")
    assert [part.label for part in document.parts] == ["Lake", "Sea"]


def test_a_sheet_with_two_cells_far_apart_is_short() -> None:
    assert reading(documents.sparse_workbook()).text == "Sheet: Sheet\nfirst\n" + "\t" * 8 + "last\n\n"


def test_empty_sheets_are_no_document() -> None:
    assert refusal(documents.workbook({"A": []})) == "cannot read the Excel workbook: its sheets are empty"


def test_what_a_sheet_says_about_its_size_is_not_believed() -> None:
    name = "xl/worksheets/sheet1.xml"
    sheet = documents.entry(documents.workbook(), name).decode()
    lying = documents.replaced(documents.workbook(), name, sheet.replace('ref="A1:B2"', 'ref="A1"'))
    assert 'ref="A1"' in documents.entry(lying, name).decode()
    assert "Heron\t7" in reading(lying).text


def test_values_are_shown_as_people_write_them() -> None:
    values = [
        1.0,
        2.5,
        1e300,
        True,
        datetime.datetime.fromisoformat("2026-03-01"),
        datetime.datetime.fromisoformat("2026-03-01T09:30"),
        None,
    ]
    assert [format_cell(value) for value in values] == [
        "1",
        "2.5",
        "1e+300",
        "True",
        "2026-03-01",
        "2026-03-01 09:30:00",
        "",
    ]


def test_a_part_of_an_old_workbook_is_a_sheet() -> None:
    document = reading(documents.old_workbook("Lake", ("Heron", 7.0, 0.5)))
    assert document.text == "Sheet: Lake\nHeron\t7\t0.5\n\n"
    assert document.parts[0].label == "Lake"


def test_a_panic_of_the_library_is_a_refusal() -> None:
    data = documents.old_workbook()
    said = {refusal(data[:end]) for end in range(1, len(data), 64)}
    assert "cannot read the Excel workbook: it is damaged: its records are invalid" in said

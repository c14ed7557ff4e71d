from tests.fakes import documents
from tests.fakes.reading import reading, refusal


def test_a_part_is_a_sheet() -> None:
    document = reading(documents.old_workbook("Lake", ("Heron", 7.0, 0.5)))
    assert document.text == "Sheet: Lake\nHeron\t7\t0.5\n\n"
    assert document.parts[0].label == "Lake"


def test_a_panic_of_the_library_is_a_refusal() -> None:
    data = documents.old_workbook()
    said = {refusal(data[:end]) for end in range(1, len(data), 64)}
    assert "cannot read the Excel workbook: it is damaged: its records are invalid" in said

from tests.fakes.documents import makers as documents
from tests.fakes.documents.readers import reading, refusal


def test_a_text_keeps_its_headings_lists_notes_and_tables() -> None:
    document = reading(
        documents.opendocument(
            "text",
            "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
            '<text:h text:outline-level="2">Herons</text:h>'
            '<text:p>They<text:s text:c="2"/>stand<text:note><text:note-citation>1</text:note-citation>'
            "<text:note-body><text:p>on one leg</text:p></text:note-body></text:note>"
            "<office:annotation><text:p>comment</text:p></office:annotation>.</text:p>"
            "<text:list><text:list-item><text:p>Perch</text:p></text:list-item></text:list>"
            "<table:table><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell>"
            "<table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></table:table>",
        )
    )
    assert document.text.rstrip("\n") == "## Herons\n\nThey  stand (on one leg).\n\n- Perch\na\tb"
    assert document.title == "Lake"
    assert document.pages is None


def test_cells_that_repeat_to_the_edge_of_a_sheet_are_few() -> None:
    cell = '<table:table-cell table:number-columns-repeated="16384"><text:p>7</text:p></table:table-cell>'
    row = f'<table:table-row table:number-rows-repeated="1048576">{cell}</table:table-row>'
    document = reading(
        documents.opendocument("spreadsheet", f'<table:table table:name="Lake">{row}</table:table>')
    )
    assert document.text == "Sheet: Lake\n" + "\t".join("7" * 64) + "\n\n"
    assert document.parts[0].label == "Lake"


def test_a_part_is_a_slide() -> None:
    def frame(text: str, kind: str = "") -> str:
        return f"<draw:frame {kind}><draw:text-box><text:p>{text}</text:p></draw:text-box></draw:frame>"

    title = frame("Herons", 'presentation:class="title"')
    notes = f"<presentation:notes>{frame('slowly')}</presentation:notes>"
    first = f"<draw:page>{title}{frame('Body')}{notes}</draw:page>"
    slides = f"{first}<draw:page/><draw:page>{frame('Last')}</draw:page>"
    document = reading(documents.opendocument("presentation", slides))
    assert document.pages == 3
    found = [(part.page, document.text[part.start : part.end].strip()) for part in document.parts]
    assert found == [(1, "# Herons\n\nBody\n\nNotes: slowly"), (3, "Last")]


def test_an_encrypted_document_says_so() -> None:
    document = documents.opendocument("text", "", manifest="<manifest><encryption-data/></manifest>")
    assert "it is encrypted" in refusal(document)

import io

import docx

from tests.fakes.documents import makers as documents
from tests.fakes.documents.readers import reading

NAMESPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def body(xml: str) -> str:
    main = f'<w:document xmlns:w="{NAMESPACE}" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
    document = documents.replaced(
        documents.word(), "word/document.xml", f"{main}<w:body>{xml}</w:body></w:document>"
    )
    return reading(document).text.rstrip("\n")


def paragraph(text: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def test_paragraphs_headings_and_tables_keep_their_order() -> None:
    document = reading(documents.word())
    assert document.text.rstrip("\n").split("\n") == [
        "# Herons",
        "",
        documents.SENTENCE,
        "",
        "Bird\tCount",
        "Heron\t7",
        "",
        "## Food",
        "",
        "Fish and frogs.",
        "",
        "Perch",
    ]
    assert document.parts[0].is_markdown
    assert document.title == "Birds of the lake"


def test_headings_go_by_the_style_whatever_it_is_called() -> None:
    file = docx.Document()
    style = file.styles.add_style("Rubrik", 1)
    style.base_style = file.styles["Heading 3"]
    file.add_paragraph("Deep", style="Rubrik")
    out = io.BytesIO()
    file.save(out)
    assert reading(out.getvalue()).text.startswith("### Deep\n")


def test_content_controls_insertions_and_boxes_are_read_once() -> None:
    box = (
        "<w:p><w:r><mc:AlternateContent><mc:Choice><w:txbxContent>" + paragraph("boxed") + "</w:txbxContent>"
        "</mc:Choice><mc:Fallback><w:txbxContent>" + paragraph("boxed") + "</w:txbxContent></mc:Fallback>"
        "</mc:AlternateContent></w:r><w:r><w:t>around</w:t></w:r></w:p>"
    )
    xml = (
        f"<w:sdt><w:sdtContent>{paragraph('control')}</w:sdtContent></w:sdt>"
        "<w:p><w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del></w:p>"
    )
    assert body(xml + box) == "control\n\nnew\n\naround\n\nboxed"


def test_tab_stops_are_no_tabs_and_breaks_are_lines() -> None:
    stops = '<w:tabs><w:tab w:val="left" w:pos="9"/></w:tabs>'
    assert body(paragraph("a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c", stops)) == "a\tb\nc"


def test_items_of_lists_are_marked() -> None:
    assert body(paragraph("one", "<w:numPr/>") + paragraph("two", "<w:numPr/>")) == "- one\n- two"


def test_tables_in_tables_come_with_their_cell() -> None:
    inner = f"<w:tbl><w:tr><w:tc>{paragraph('in')}</w:tc></w:tr></w:tbl>"
    table = f"<w:tbl><w:tr><w:tc>{paragraph('a')}{inner}</w:tc><w:tc>{paragraph('b')}</w:tc></w:tr></w:tbl>"
    assert body(table) == "a in\tb"


def test_a_document_with_macros_is_read() -> None:
    types = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    with_macros = "application/vnd.ms-word.document.macroEnabled.main+xml"
    packed = documents.entry(documents.word(), "[Content_Types].xml").decode().replace(types, with_macros)
    document = documents.replaced(documents.word(), "[Content_Types].xml", packed)
    assert documents.SENTENCE in reading(document).text


def test_footnotes_follow_the_text() -> None:
    notes = (
        f'<w:footnotes xmlns:w="{NAMESPACE}"><w:footnote>{paragraph("the note")}</w:footnote></w:footnotes>'
    )
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes"
    links = documents.entry(documents.word(), "word/_rels/document.xml.rels").decode()
    link = f'<Relationship Id="rId99" Type="{kind}" Target="footnotes.xml"/></Relationships>'
    document = documents.replaced(documents.word(), "word/footnotes.xml", notes)
    document = documents.replaced(
        document, "word/_rels/document.xml.rels", links.replace("</Relationships>", link)
    )
    assert reading(document).text.rstrip("\n").endswith("the note")

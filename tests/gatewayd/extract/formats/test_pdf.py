from tests.fakes.documents import makers as documents
from tests.fakes.documents.readers import reading, refusal


def test_pages_are_numbered_and_empty_ones_skipped() -> None:
    document = reading(documents.pdf(["first page", "", "third page"], title="Birds"))
    assert (document.pages, document.blank_pages) == (3, 1)
    assert document.title == "Birds"
    found = [(part.page, document.text[part.start : part.end].strip()) for part in document.parts]
    assert found == [(1, "first page"), (3, "third page")]


def test_scanned_pages_are_counted() -> None:
    document = reading(documents.partly_scanned_pdf(9, "the last page"))
    assert (document.pages, document.blank_pages) == (10, 9)
    assert [part.page for part in document.parts] == [10]


def test_words_cut_at_the_end_of_a_line_are_joined() -> None:
    text = reading(documents.pdf(["the docu-\nmentation of North-\nSouth 1-\n2"])).text
    assert text.split("\n")[:3] == ["the documentation of North-", "South 1-", "2"]


def test_ligatures_are_the_letters_that_people_search() -> None:
    assert reading(documents.written_pdf("an e\ufb03cient \ufb01le")).text == "an efficient file\n\n"


def test_every_kind_of_bad_pdf_has_its_sentence() -> None:
    assert refusal(documents.pdf(password="x")) == (
        "cannot read the PDF: it is encrypted; remove the password and upload it again"
    )
    assert refusal(documents.pdf_without_pages()) == "cannot read the PDF: it has no pages"
    assert refusal(documents.scanned_pdf(2)).startswith(
        "cannot read the PDF: no text was found in its 2 pages (scanned?)"
    )
    assert "its end is missing" in refusal(documents.pdf([documents.SENTENCE] * 20)[:3000])
    assert refusal(b"%PDF-1.7 and nothing else") == (
        "cannot read the PDF: it is damaged; repair it or make it again"
    )
    assert "it has 3 pages, more than 2" in refusal(documents.pdf(["x"] * 3), pages=2)


def test_a_page_that_cannot_be_read_fails_the_document() -> None:
    catalogue = b"<< /Type /Catalog /Pages 2 0 R >>"
    pages = b"<< /Type /Pages /Kids [3 0 R 2 0 R] /Count 2 >>"
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>"
    assert "it is damaged (code=7: cycle in page tree)" in refusal(
        documents.raw_pdf([catalogue, pages, page])
    )


def test_a_count_of_pages_that_lies_is_no_loop() -> None:
    pages = b"<< /Type /Pages /Kids [] /Count 2000000000 >>"
    assert refusal(documents.raw_pdf([b"<< /Type /Catalog /Pages 2 0 R >>", pages]))


def test_chapters_of_a_book_have_their_titles() -> None:
    document = reading(documents.epub({"Herons": "They stand.", "Owls": "They fly."}))
    assert [part.label for part in document.parts] == ["Herons", "Owls"]
    assert document.title == "Birds"
    assert document.pages is None
    owls = document.parts[1]
    assert document.text[owls.start : owls.end].split("\n")[:2] == ["Owls", "They fly."]


def test_a_protected_book_says_so() -> None:
    book = documents.replaced(documents.epub({"A": ""}), "META-INF/rights.xml", "<r/>")
    empty = documents.replaced(book, "c0.xhtml", "<html xmlns='http://www.w3.org/1999/xhtml'><body/></html>")
    assert "DRM" in refusal(empty)

from tests.fakes import documents
from tests.fakes.reading import reading


def test_a_part_is_a_slide_with_its_title_tables_groups_and_notes() -> None:
    document = reading(documents.slides())
    assert (document.pages, document.title) == (2, "Lake")
    first, second = (document.text[part.start : part.end].strip() for part in document.parts)
    assert first == f"# Herons\n\n{documents.SENTENCE}\n\nNotes: Speak slowly."
    assert second == "# Counts\n\nHeron\t7\n\nInside a group."
    assert [part.page for part in document.parts] == [1, 2]


def test_a_slide_show_is_a_presentation() -> None:
    types = documents.entry(documents.slides(), "[Content_Types].xml").decode()
    show = types.replace("presentation.main+xml", "slideshow.main+xml")
    document = reading(documents.replaced(documents.slides(), "[Content_Types].xml", show))
    assert document.pages == 2

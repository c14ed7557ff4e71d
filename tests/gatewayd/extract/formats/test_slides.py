import re

from tests.fakes.documents import makers as documents
from tests.fakes.documents.readers import reading, refusal

PRESENTATION = "ppt/presentation.xml"
FIRST = "ppt/slides/slide1.xml"


def changed(name: str, old: str, new: str) -> bytes:
    """Return the presentation with one of its entries written otherwise."""
    content = documents.entry(documents.slides(), name).decode()
    assert re.search(old, content)
    return documents.replaced(documents.slides(), name, re.sub(old, new, content))


def parts(data: bytes) -> list[str]:
    document = reading(data)
    return [document.text[part.start : part.end].strip() for part in document.parts]


def test_a_part_is_a_slide_with_its_title_tables_groups_and_notes() -> None:
    document = reading(documents.slides())
    assert (document.pages, document.title) == (2, "Lake")
    first, second = (document.text[part.start : part.end].strip() for part in document.parts)
    assert first == f"# Herons\n\n{documents.SENTENCE}\n\nNotes: Speak slowly."
    assert second == "# Counts\n\nHeron\t7\n\nInside a group."
    assert [part.page for part in document.parts] == [1, 2]


def test_a_slide_show_is_a_presentation() -> None:
    show = changed("[Content_Types].xml", "presentation.main\\+xml", "slideshow.main+xml")
    assert reading(show).pages == 2


def test_slides_come_in_the_order_in_which_they_are_shown() -> None:
    shown = changed(PRESENTATION, "(<p:sldId [^>]*>)(<p:sldId [^>]*>)", r"\2\1")
    assert [text.split("\n")[0] for text in parts(shown)] == ["# Counts", "# Herons"]


def test_a_target_may_begin_at_the_top_of_the_package() -> None:
    shown = changed("ppt/_rels/presentation.xml.rels", '"slides/slide1.xml"', '"/ppt/slides/slide1.xml"')
    assert parts(shown)[0].startswith("# Herons")


def test_a_line_break_and_a_field_are_text() -> None:
    shown = changed(
        FIRST, "<a:t>Herons</a:t></a:r>", '<a:t>A</a:t></a:r><a:br/><a:fld id="{0}"><a:t>7</a:t></a:fld>'
    )
    assert parts(shown)[0].startswith("# A 7\n")
    body = f"<a:t>{documents.SENTENCE}</a:t></a:r>"
    shown = changed(FIRST, re.escape(body), "<a:t>one</a:t></a:r><a:br/><a:r><a:t>two</a:t></a:r>")
    assert "\n\none\ntwo\n\n" in parts(shown)[0]


def test_the_strict_form_is_read() -> None:
    strict = documents.slides()
    for name in (
        PRESENTATION,
        FIRST,
        "_rels/.rels",
        "ppt/_rels/presentation.xml.rels",
        "ppt/slides/_rels/slide1.xml.rels",
    ):
        content = documents.entry(strict, name).decode()
        content = re.sub(
            "http://schemas.openxmlformats.org/(drawingml|presentationml|officeDocument)/2006/",
            r"http://purl.oclc.org/ooxml/\1/",
            content,
        )
        strict = documents.replaced(strict, name, content)
    assert b"purl.oclc.org" in documents.entry(strict, PRESENTATION)
    assert parts(strict) == parts(documents.slides())


def test_without_a_title_and_properties_there_is_none() -> None:
    bare = changed(FIRST, '<p:ph type="title"/>', "")
    assert parts(bare)[0].startswith(f"Herons\n\n{documents.SENTENCE}")
    untitled = changed("_rels/.rels", 'Type="[^"]*/core-properties"', 'Type="other"')
    assert reading(untitled).title is None


def test_a_slide_or_presentation_that_is_not_there_is_said() -> None:
    lost = changed(
        "ppt/_rels/presentation.xml.rels", 'Target="slides/slide1.xml"', 'Target="slides/none.xml"'
    )
    assert "it is damaged" in refusal(lost)
    assert "slides/none.xml" in refusal(lost)
    headless = changed("_rels/.rels", 'Type="[^"]*/officeDocument"', 'Type="other"')
    assert "no relationship to a presentation part" in refusal(headless)
    assert "it is damaged" in refusal(documents.replaced(documents.slides(), FIRST, "<p:sld"))

import pytest

from gatewayd.extract.text_builder import (
    DocumentError,
    TextBuilder,
    clean_text,
    markdown_heading,
    single_line,
    table_row,
)
from gatewayd.ingest.records import TextPart


def test_parts_are_where_they_were_written() -> None:
    draft = TextBuilder(100)
    draft.write("one")
    draft.end_part(page=1)
    draft.write("two")
    draft.end_part(page=2, label=" a\nb ", is_markdown=True)
    document = draft.finish(pages=2, title="x\n y")
    assert document.text == "one\ntwo\n"
    assert document.parts == (TextPart(0, 4, 1), TextPart(4, 8, 2, "a b", is_markdown=True))
    assert (document.pages, document.title) == (2, "x y")


def test_nothing_remains_of_a_part_without_anything_to_see() -> None:
    draft = TextBuilder(100)
    for page, text in enumerate((" \n", "one", "\ufffd\u200b", "two"), 1):
        draft.write(text)
        draft.end_part(page=page)
    document = draft.finish()
    assert document.text == "one\ntwo\n"
    assert [part.page for part in document.parts] == [2, 4]
    assert document.blank_pages == 2


def test_only_pages_can_be_blank() -> None:
    draft = TextBuilder(100)
    for label in ("empty", "full"):
        draft.write(label if label == "full" else " ")
        draft.end_part(label=label)
    assert draft.finish().blank_pages == 0


def test_a_document_without_text_is_refused_with_the_reason_given() -> None:
    draft = TextBuilder(100)
    draft.write(" \x00\u00ad")
    draft.end_part()
    with pytest.raises(DocumentError, match="scanned"):
        draft.finish(nothing="scanned")


def test_the_limit_counts_characters_of_all_parts() -> None:
    draft = TextBuilder(10)
    draft.write("12345678")
    draft.end_part()
    with pytest.raises(DocumentError, match="more than 10 characters"):
        draft.write("90")


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a\r\nb\rc\x0cd", "a\nb\nc\nd"),
        ("a\x00b\x1bc\x7f", "abc"),
        ("\ud83d\ude00 \ud800x", "\U0001f600 \ufffdx"),
        ("tab\tstays", "tab\tstays"),
        ("e\ufb03cient \ufefb", "efficient \u0644\u0627"),
    ],
)
def test_characters_that_no_text_has_are_removed(text: str, clean: str) -> None:
    assert clean_text(text) == clean
    clean_text(text).encode()


def test_the_places_of_parts_are_those_of_the_letters() -> None:
    draft = TextBuilder(100)
    for page, text in enumerate(("\ufb01nal o\ufb03ce", "\ufefb"), 1):
        draft.write(text)
        draft.end_part(page=page)
    document = draft.finish()
    assert [document.text[part.start : part.end] for part in document.parts] == [
        "final office\n",
        "\u0644\u0627\n",
    ]


def test_lines() -> None:
    assert markdown_heading(0, " a\n b ") == "# a b\n\n"
    assert markdown_heading(9, "x") == "###### x\n\n"
    assert markdown_heading(1, " ") == ""
    assert table_row(["a", " b\tc ", "", ""]) == "a\tb c\n"
    assert table_row(["", ""]) == ""
    assert table_row(["a", *[""] * 5000, "z"]) == "a" + "\t" * 8 + "z\n"
    assert single_line("  ") is None
    assert len(single_line("x" * 999) or "") < 250

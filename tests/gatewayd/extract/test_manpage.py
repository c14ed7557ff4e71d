from gatewayd.extract.manpage import Page


def test_words_are_filled_into_paragraphs() -> None:
    page = Page()
    page.write("one")
    page.write("two")
    page.write(".", glued=True)
    page.end_paragraph()
    page.end_paragraph()
    page.write("(")
    page.glue()
    page.write("three")
    assert page.whole() == "one two.\n\n(three\n"


def test_lines_of_a_block_stay_as_they_are() -> None:
    page = Page()
    page.set_literal(literal=True)
    page.write("a  b")
    page.end_line()
    page.set_literal(literal=False)
    page.set_literal(literal=True)
    page.set_literal(literal=False)
    assert page.whole() == "```\na  b\n```\n"


def test_items_stand_one_step_before_what_is_in_them() -> None:
    page = Page()
    for tag in ("one", "two"):
        page.depth = 1
        page.begin_item("- ")
        page.write(tag)
        page.end_line()
        page.write("words")
        page.end_paragraph()
    page.heading(2, " NEXT  ONE")
    assert page.whole() == "- one\n  words\n- two\n  words\n\n## NEXT ONE\n"


def test_a_heading_ends_what_is_open() -> None:
    page = Page()
    page.set_literal(literal=True)
    page.write("code")
    page.heading(3, "Next")
    page.heading(3, " ")
    assert page.whole() == "```\ncode\n```\n\n### Next\n"

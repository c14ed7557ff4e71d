from tests.fakes.documents import makers as documents
from tests.fakes.documents.readers import reading


def test_letters_beyond_ascii_are_read() -> None:
    assert reading(documents.rich_text()).text == f"{documents.SENTENCE}\ncafé €\n"


def test_the_encoding_is_what_the_file_says() -> None:
    assert reading(rb"{\rtf1\ansi\ansicpg1251 \'e4\'e0}").text == "да\n"


def test_links_without_end_are_read_in_time() -> None:
    data = rb"{\rtf1 words " + rb'{\field{\*\fldinst{HYPERLINK "' * 5000
    assert reading(data).text == "words \n"


def test_the_text_of_a_link_is_kept() -> None:
    link = rb'{\rtf1 see {\field{\*\fldinst{HYPERLINK "https://example.org/"}}{\fldrslt the page}} now}'
    assert "the page" in reading(link).text

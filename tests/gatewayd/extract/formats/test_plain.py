from tests.fakes.documents.readers import reading


def test_source_code_is_kept_as_it_is() -> None:
    document = reading(b"# a comment\ndef f():\n\treturn 1\n", "a.py")
    assert document.text == "# a comment\ndef f():\n\treturn 1\n\n"
    assert not document.parts[0].is_markdown


def test_the_title_of_markdown_is_its_first_heading() -> None:
    document = reading(b"intro\n\n# Birds #\n\n## Herons\n", "a.md")
    assert document.title == "Birds #"
    assert document.parts[0].is_markdown


def test_tables_are_kept_as_they_are() -> None:
    assert reading("Vogel;Zahl\r\nMöwe;7\r\n".encode("cp1252"), "a.csv").text == "Vogel;Zahl\nMöwe;7\n\n"

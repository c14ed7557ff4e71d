"""gatewayd-api(7) is the page that the route rows give, and has every one of them."""

from tests.write_api_manual import PAGE, SECTIONS, escape, page, prose, rows, section_of, shown_path


def test_the_page_is_the_one_that_the_rows_give() -> None:
    assert PAGE.read_text() == page(), "run: python -m tests.write_api_manual"


def test_every_row_is_in_the_page() -> None:
    lines = PAGE.read_text().splitlines()
    found = rows()
    assert len(found) > 250
    for row in found:
        path = shown_path(row)
        told = {f".It Ic {row.method} Pa {path}", f".Pa {path} ,", f".Pa {path} ."}
        assert told & set(lines), (row.method, path)
        assert section_of(row).title


def test_no_section_is_empty() -> None:
    known = {row.tag for row in rows()}
    assert [section.title for section in SECTIONS if not section.tags <= known] == []


def test_every_row_of_json_has_a_schema() -> None:
    bare = [(row.method, row.path) for row in rows() if row.reply is None and set(row.statuses) - {101, 204}]
    assert bare == []


def test_text_cannot_become_a_request() -> None:
    assert escape(".Sh x \\ y") == r"\&.Sh x \e y"
    assert list(prose("See gatewayd-scim(7). It is. so")) == ["See", ".Xr gatewayd-scim 7 .", "It is. so"]

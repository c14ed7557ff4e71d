import pytest

from gatewayd.extract.formats.markup import to_markdown
from tests.fakes.documents import makers as documents
from tests.fakes.documents.readers import reading, refusal


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<h2>A <b>b</b></h2><p>one\n two</p>three", "## A b\n\none two\n\nthree\n"),
        ("<ul><li>one<li><p>two</p></ul>end", "- one\n\n- two\n\nend\n"),
        ("<table><tr><th>a<th>b<tr><td>1<td><b>2</b></table>", "a\tb\n1\t2\n"),
        ("<pre>x\n  y</pre><p>z", "```\nx\n  y\n```\n\nz\n"),
        ("a<br>b<hr>c", "a\nb\nc\n"),
        ("<nav>menu</nav><script>s</script><style>t</style><template>u</template>x<!-- c -->", "x\n"),
        ("caf&eacute; &lt;b&gt;", "café <b>\n"),
        ("<div><div>deep</div></div>after", "deep\nafter\n"),
    ],
)
def test_pages_become_markdown(html: str, text: str) -> None:
    assert to_markdown(f"<html><body>{html}</body></html>")[0] == text


def test_the_title_is_the_title() -> None:
    document = reading(documents.page())
    assert document.title == "Lake"
    assert document.parts[0].is_markdown


@pytest.mark.parametrize(
    ("head", "content_type"),
    [
        ('<meta charset="koi8-r">', None),
        ('<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">', None),
        ("", "text/html; charset=koi8-r"),
    ],
)
def test_the_declared_encoding_is_used(head: str, content_type: str | None) -> None:
    data = documents.page("<p>да</p>", head=head).decode().encode("koi8-r")
    assert reading(data, content_type=content_type).text == "да\n\n"


def test_pages_nested_deeper_than_python_goes_are_read() -> None:
    assert to_markdown("<div>" * 15_000 + "x")[0] == "x\n"
    assert to_markdown("<a><b>" * 5_000 + "x")[0] == "x\n"


def test_pages_nested_too_deeply_are_refused() -> None:
    assert "nested more than 20000 deep" in refusal(b"<html>" + b"<div>" * 200_000)
    assert to_markdown("<p>x<br>" * 30_000)[0].count("x") == 30_000

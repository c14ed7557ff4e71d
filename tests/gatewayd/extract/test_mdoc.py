import pytest

from gatewayd.extract.manpage import Page
from gatewayd.extract.mdoc import Inline
from gatewayd.extract.roff import words
from gatewayd.extract.roffchars import unescaped


def told(*lines: str) -> str:
    page = Page()
    inline = Inline(page, unescaped)
    for line in lines:
        inline.write(list(words(line)))
    return page.whole().rstrip("\n")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Op Fl f Ar file", "[-f file]"),
        ("Op Fl n | Fl -migrate", "[-n | --migrate]"),
        ("Fl f Ar file , Fl -file Ar file", "-f file, --file file"),
        ("Fl Ns Ar n", "-n"),
        ("Pq Pa /.search No or Pa / ,", "(/.search or /),"),
        ("Dq Tenant URL", '"Tenant URL"'),
        (r"Ql \&; .", "';'."),
        ("Xr gatewayd 8 ,", "gatewayd(8),"),
        ("Ic log_format No = 1", "log_format = 1"),
        ("Cm a Ns : Ns Ar b", "a:b"),
        ("Pf ( Ar x )", "(x)"),
        ("Ar", "file ..."),
        ("Ar .", "file ...."),
        ("Em a Ap s", "a's"),
        ("Fn read int void .", "read(int, void)."),
        ("In stdio.h", "<stdio.h>"),
        ('Li "Ar x"', "Ar x"),
        ("Bx 4.4 ,", "4.4BSD,"),
        ("Ox 7.0", "OpenBSD 7.0"),
        ("Brq a Ta b", "{a\tb}"),
        ("Aq Mt a@b.org", "<a@b.org>"),
        ("An -nosplit", ""),
        ("Sy one Em two", "one two"),
    ],
)
def test_calls_say_what_a_terminal_shows(line: str, said: str) -> None:
    assert told(line) == said


def test_quotes_go_over_lines() -> None:
    assert told("Oo Fl a", "Ar b Oc , c") == "[-a b], c"
    assert told("Do one", "No two Dc .") == '"one two".'


def test_the_name_is_said_once() -> None:
    assert told("Nm gatewayd", "Nm", "Nm ,") == "gatewayd gatewayd gatewayd,"

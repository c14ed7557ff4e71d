import pytest

from gatewayd.extract.roff import DEEPEST, MOST_LINES, Roff, words


def told(text: str) -> list[str]:
    """Return text lines as they are, and calls as the name and the arguments between commas."""
    return [
        line.raw if not line.macro else f"{line.macro}:{','.join(word.raw for word in line.words)}"
        for line in Roff(text).lines()
    ]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one\n.B two three\n'br", ["one", "B:two,three", "br:"]),
        ('.\\" a comment\n\'\\" t\n.\nx \\" y', ["x "]),
        (".B a \\\nb\nc\\\nd", ["B:a,b", "cd"]),
        (".de XX\nhidden\n..\n.ig\nhidden\n..\nseen", ["seen"]),
        (".de XX\n.  B \\\\$1 and \\\\$2\n.  .\n.XX one two", ["B:one,and,two"]),
        (".de XX EN\n\\\\$*\n.EN\n.XX a b", ["a b"]),
        (".de XX\nold\n..\n.als YY XX\n.YY", ["old"]),
        (".if n yes\n.if t no\n.if !n no\n.if !t yes", ["yes", "yes"]),
        (".ie n one\n.el two\n.ie t one\n.el two", ["one", "two"]),
        (".ie \\n(.g gnu\n.el other\n.if \\nF>0 set\n.if \\n[x]=0 unset", ["gnu", "unset"]),
        (".if 'a'a' same\n.if 'a'b' other", ["same"]),
        (".if t \\{\\\n.B no\n.if n \\{ no\n\\}\nno\n.\\}\nyes", ["yes"]),
        (".if n \\{\\\n.B yes\nalso\n.\\}\nyes", ["B:yes", "also", "yes"]),
        (".ie t \\{ no \\}\n.el \\{ yes \\}", ["yes "]),
        (".if t \\{\nlost\n.SH NAME\nfound", ["SH:NAME", "found"]),
    ],
)
def test_lines_are_those_of_a_screen(text: str, lines: list[str]) -> None:
    assert told(text) == lines


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (' a "b c" d', ["a", "b c", "d"]),
        (' "say ""yes"""', ['say "yes"']),
        (r" a\ b c", [r"a\ b", "c"]),
        (' "no end', ["no end"]),
        ("", []),
    ],
)
def test_arguments_are_told_apart(raw: str, expected: list[str]) -> None:
    assert [word.raw for word in words(raw)] == expected


def test_words_between_quotes_are_marked() -> None:
    assert [word.is_quoted for word in words(' Ar "Ar"')] == [False, True]


def test_strings_of_the_page_are_used() -> None:
    page = Roff('.ds NM gateway\n.as NM ctl\n.ds V "1.0')
    assert list(page.lines()) == []
    assert page.said(r"\*(NM \*V") == "gatewayctl 1.0"


def test_strings_that_grow_end() -> None:
    page = Roff(".ds a xxxxxxxxxx\n" + ".as a \\*a\n" * 50 + ".")
    assert list(page.lines()) == []
    assert len(page.said(r"\*a")) == 1000


def test_macros_that_call_themselves_end() -> None:
    assert told(".de A\nx\n.A\n..\n.A") == ["x"] * DEEPEST
    page = ".de A\n" + ".A\n" * 10 + "x\n..\n.A"
    assert 0 < len(told(page)) < MOST_LINES


def test_macros_that_are_known_stay() -> None:
    lines = list(Roff(".de PP\nother\n..\n.PP", {"PP"}).lines())
    assert [line.macro for line in lines] == ["PP"]


def test_conditions_in_conditions_are_left_out_together() -> None:
    assert told(".if t \\{\n" * 3 + "no\n" + ".\\}\n" * 3 + "yes") == ["yes"]
    assert told(".if n \\{\n" * 3 + "yes\n" + ".\\}\n" * 3 + "also") == ["yes", "also"]


def test_conditions_on_one_line_end() -> None:
    assert told(".if n " * 40 + "deep") == ["deep"]
    assert told(".if n " * 100_000 + "too deep\nnext") == ["next"]
    assert told(f".if {'9' * 5000} long\n.if 1 short") == ["short"]

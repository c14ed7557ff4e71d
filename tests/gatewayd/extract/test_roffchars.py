import pytest

from gatewayd.extract.roffchars import SPACE, special, unescaped


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("no escapes", "no escapes"),
        (r"\(dqx\(dq \(aqy\(aq \*(lqz\*(rq \*qw\*q", '"x" \'y\' "z" "w"'),
        (r"a\-b \[em] \(em \[u00E9]\[u2026] \C'bu'", "a-b — — é… •"),
        (r"\fBbold\fP \f(CWcode\fR \f[BI]both\f[] \s-1small\s0 \s[+2]large", "bold code both small large"),
        (r"\&.x \e \\ a\|b\^c\%d\:e \.", ".x \\ \\ abcde ."),
        (r"a\ b\~c\0d", f"a{SPACE}b{SPACE}c{SPACE}d"),
        (r"\h'-04'\(bu\h'+03'x \v'1'y \o'a/'", "•x y a/"),
        (r"\['e]\[`a]\[:u] \N'65'", "éàü A"),
        (r"\n[.g]\n(xx\nx \*[unknown]\*(un.", " ."),
        (r"\*(Tm\*R", "™®"),
    ],
)
def test_escapes_become_text(raw: str, said: str) -> None:
    assert unescaped(raw) == said


@pytest.mark.parametrize(
    "raw", ["\\", "\\(", "\\(x", "\\[", "\\[x", "\\*", "\\f", "\\s", "\\h'", "\\C'x", "\\N"]
)
def test_an_escape_without_end_ends_the_text(raw: str) -> None:
    assert unescaped(f"words {raw}").startswith("words ")


@pytest.mark.parametrize("name", ["uD800", "u110000", "char0999999", "nonsense"])
def test_names_of_no_character_say_nothing(name: str) -> None:
    assert special(name) == ""

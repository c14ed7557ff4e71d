import gzip
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from gatewayd.extract.manual import SILENT
from gatewayd.extract.mdoc import CALLABLE
from tests.fakes.reading import reading

PAGES = sorted((Path(__file__).parents[3] / "man").glob("*.[1-9]"))
MACRO = re.compile(r"(?m)^[.'][A-Za-z]{1,3}\b.*$")
SIGNS = re.compile(r"(?m)^ *(?:```|#+|-|\d\.)(?=\s)")
QUOTES = str.maketrans("\u201c\u201d\u2018\u2019\u2010\u2212", "\"\"''--")

MDOC = """\
.\\" A comment.
.Dd November 21, 2026
.Dt FRIES 1
.Os
.Sh NAME
.Nm fries
.Nd cut potatoes
.Sh SYNOPSIS
.Nm
.Op Fl n
.Nm
.Fl -salt
.Sh DESCRIPTION
.Nm
cuts
.Em potatoes .
.Pp
Lists:
.Bl -tag -width Ds
.It Fl n , Fl -dry-run
Do nothing.
.Pp
Really.
.It Xo
.Fl x
.Ar y
.Xc
More.
.El
.Bl -bullet -compact
.It
one
.It
two
.El
.Ss Code
.Bd -literal -offset indent
# fries   --salt
second
.Ed
.Dl one line
.Bl -column "a" "b"
.It Sy name Ta Sy meaning
.It a Ta b c
.El
"""

MAN = """\
'\\" t
.TH POTATO 7 "2026-11-21" "kitchen"
.SH NAME
potato \\- a vegetable
.SH "COOKING IT"
It is
.BR boiled (1)
or
.B fried
and
.IR "never raw" .
.PP
Steps:
.TP
.BI \\-t " minutes"
How long.
.TQ
.B \\-\\-time
.IP \\(bu 2
a bullet
.RS
.IP 1. 3
first
.RE
.nf
pot  on
stove
.fi
.SS
Late heading
Text.
.UR https://example.org/
the page
.UE .
.TS
l l.
a\tb
.TE
.UNKNOWN words stay
"""


def test_mdoc_becomes_markdown() -> None:
    document = reading(MDOC.encode())
    assert document.title == "fries(1)"
    assert document.parts[0].is_markdown
    assert (
        document.text.rstrip() + "\n"
        == """\
# fries(1)

## NAME

fries - cut potatoes

## SYNOPSIS

fries [-n]
fries --salt

## DESCRIPTION

fries cuts potatoes.

Lists:

- -n, --dry-run
  Do nothing.

  Really.
- -x y
  More.

- one
- two

### Code

```
# fries   --salt
second
```

```
one line
```

name\tmeaning
a\tb c
"""
    )


def test_man_becomes_markdown() -> None:
    document = reading(MAN.encode())
    assert document.title == "potato(7)"
    assert (
        document.text.rstrip() + "\n"
        == """\
# potato(7)

## NAME

potato - a vegetable

## COOKING IT

It is boiled(1) or fried and never raw.

Steps:

- -t minutes
  How long.
- --time
- a bullet
  1. first
  ```
  pot  on
  stove
  ```

### Late heading

Text. the page <https://example.org/>.

a\tb

words stay
"""
    )


def test_a_page_may_be_compressed() -> None:
    document = reading(gzip.compress(MDOC.encode()), "fries.1.gz")
    assert document.title == "fries(1)"


def test_names_keep_the_case_of_the_page() -> None:
    assert reading(b".TH XORG 1\n.SH NAME\nXorg \\- a server\n").title == "Xorg(1)"
    assert reading(b".TH A 1\n.SH OTHER\nwords\n").title == "a(1)"
    assert reading(b".Dd today\n.Sh NAME\nwords\n").title is None


def test_what_is_left_open_ends_with_the_page() -> None:
    for end in (
        ".Bl -tag",
        ".Bd -literal",
        ".nf",
        ".TP",
        ".TS",
        ".Oo a",
        ".It Xo",
        ".RS",
        ".SH",
        ".UR x",
        ".de X",
    ):
        text = reading(f".TH A 1\n.SH B\nwords\n{end}\nmore\n".encode()).text
        assert "words" in text
        assert MACRO.findall(text) == []


def test_ends_of_nothing_are_passed_over() -> None:
    for end in (".El", ".Ed", ".fi", ".RE", ".TE", ".Oc", ".Xc", ".It a", ".UE", ".It", ".Ta", ".."):
        assert "words" in reading(f".TH A 1\n.SH B\n{end}\nwords\n".encode()).text


@pytest.mark.parametrize(
    "macro", sorted({*CALLABLE, *SILENT, "Bl", "It", "Fo", "Fc", "Sm", "IP", "SY", "OP"})
)
def test_every_macro_takes_anything(macro: str) -> None:
    for words in ("", " .", " a", " a b .", ' "" ""', " Ar", f" {macro}", " -x -y"):
        text = f".TH A 1\n.SH B\nbefore\n.{macro}{words}\nafter\n.SH C\nend\n"
        assert "before" in reading(text.encode()).text


def shown(page: Path) -> str:
    """Return a page as mandoc shows it, without the lines at the top and at the bottom."""
    made = subprocess.run(
        ["mandoc", "-Tutf8", "-O", "width=500", str(page)], capture_output=True, check=True, timeout=60
    )
    plain = re.sub(".\b|\x1b\\[[0-9;]*m", "", made.stdout.decode()).translate(QUOTES)
    return "\n".join(plain.strip().splitlines()[1:-1])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_of_this_manual_are_read(page: Path) -> None:
    document = reading(page.read_bytes(), page.name)
    assert document.title == f"{page.stem}({page.suffix[1:]})"
    assert MACRO.findall(document.text) == []
    assert "\\" not in re.sub(r"\\\\|\\[a-zU\"]", "", document.text)


@pytest.mark.real("mandoc")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_have_the_words_that_mandoc_shows(page: Path) -> None:
    text = SIGNS.sub("", reading(page.read_bytes(), page.name).text.partition("\n")[2])
    said, expected = (Counter(re.findall(r"\S+", each)) for each in (text, shown(page)))
    missing, more = expected - said, said - expected
    assert sum(missing.values()) < sum(expected.values()) / 100, missing
    assert sum(more.values()) < sum(expected.values()) / 100, more

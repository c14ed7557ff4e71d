"""Manual pages, and what is read of the HTML that mandoc makes of them."""

import gzip
import subprocess
from pathlib import Path

import pytest

from gatewayd.extract.formats.manual import page_text
from gatewayd.extract.mandoc import OPTIONS
from gatewayd.extract.readers import read_document
from gatewayd.extract.records import DocumentLimits, ExtractedDocument
from tests.fakes.documents.readers import reading

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


def formatted(page: str) -> ExtractedDocument:
    """Return what is read of a page when mandoc has formatted it."""
    made = subprocess.run(
        ["mandoc", *OPTIONS], input=page.encode(), capture_output=True, check=True, timeout=60
    )
    return read_document(Path(), "x", None, DocumentLimits(), made.stdout)


@pytest.mark.real("mandoc")
def test_mdoc_becomes_markdown() -> None:
    document = formatted(MDOC)
    assert document.title == "fries(1)"
    assert document.parts[0].is_markdown
    assert document.text == (
        """\
# fries(1)

## NAME

fries — cut potatoes

## SYNOPSIS

fries \t[-n]

fries \t--salt

## DESCRIPTION

fries cuts potatoes.

Lists:

-n, --dry-run
Do nothing.

Really.

-x y
More.

- one
- two

### Code

```
# fries   --salt
second
```

one line

name \tmeaning
a \tb c

"""
    )


@pytest.mark.real("mandoc")
def test_man_becomes_markdown() -> None:
    document = formatted(MAN)
    assert document.title == "potato(7)"
    assert document.text == (
        """\
# potato(7)

## NAME

potato - a vegetable

## COOKING IT

It is boiled(1) or fried and never raw.

Steps:

-t minutes
How long.
--time

•
a bullet

1.
first

```
pot  on
stove
```

### Late heading

Text. the page.

a \tb

"""
    )


def test_a_page_is_handed_on_as_it_is_when_it_is_not_formatted() -> None:
    for data, name in ((MDOC.encode(), "fries.1"), (gzip.compress(MDOC.encode()), "fries.1.gz")):
        document = reading(data, name)
        assert document.is_roff
        assert document.text.rstrip() == MDOC.rstrip()


@pytest.mark.parametrize(
    "margin", ['<table class="head"><tr><td>X(1)</td></tr></table>', '<div class="head" role="x">X(1)</div>']
)
def test_the_lines_at_the_margins_are_left_out(margin: str) -> None:
    page = f"<head><title>Xorg(1)</title></head><body>{margin}<h1>NAME</h1><p>x</p>"
    assert page_text(page) == ("# Xorg(1)\n\n## NAME\n\nx\n", "Xorg(1)")

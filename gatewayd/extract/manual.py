"""Text of manual pages in roff, as Markdown; mdoc(7) and man(7), which no other program reads here."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from gatewayd.extract.blob import read_bytes
from gatewayd.extract.draft import row
from gatewayd.extract.encodings import charset_of, decode
from gatewayd.extract.manpage import Page
from gatewayd.extract.mdoc import CALLABLE, CLOSING, Inline
from gatewayd.extract.plain import as_document
from gatewayd.extract.records import Document, Source
from gatewayd.extract.roff import Line, Roff, Word
from gatewayd.extract.roffchars import SPACE
from gatewayd.extract.tbl import rows

NAMED: Final = re.compile(r"^## NAME\n+([^\s,(]+)", re.MULTILINE)
# Requests and macros that say nothing to a reader.
SILENT: Final = {
    *("ad", "af", "bp", "ce", "cflags", "cs", "fam", "fc", "ft", "hc", "hw", "hy", "hym", "hyw", "in"),
    *("it", "ll", "lf", "lg", "ls", "lt", "mk", "mso", "na", "ne", "nh", "nr", "nop", "ns", "nx", "pl", "pn"),
    *("po", "ps", "rm", "rn", "rr", "rs", "rt", "so", "ss", "sv", "ta", "tc", "ti", "tr", "uf", "ul", "vs"),
    *("warn", "blm", "cp", "do", "ec", "eo", "em", "ev", "ex", "pc", "AT", "UC", "PD", "DT", "IX", "UN"),
    *("Dd", "Os", "Bk", "Ek", "Tg", "Db", "Ef", "XX", "EQ", "EN", "TE", "INDENT", "UNINDENT", "return"),
    *("char", "fp", "ab", "tm"),
}
FONTS: Final = {"B", "I", "R", "SB", "SM"}
TURNS: Final = {"BR", "RB", "IR", "RI", "BI", "IB", "MR"}
BULLETS: Final = {"o", "*", "-", "+", "•", "·", "○", "—", "\u2013"}
NUMBERED: Final = re.compile(r"[(\[]?(\d{1,3}|[a-zA-Z])[.)\]]")
KINDS: Final = {"-bullet": "- ", "-dash": "- ", "-hyphen": "- ", "-enum": "1. ", "-item": ""}
LITERAL: Final = {"-literal", "-unfilled"}
# Macros of mdoc that begin a line in the synopsis.
CALLS: Final = {"Nm", "Fn", "Fo", "In", "Ft", "Vt", "Cd", "Fd"}


def read(source: Source) -> Document:
    """Return the text of a manual page; its title is name(section)."""
    manual = Manual(decode(read_bytes(source), charset_of(source.content_type)))
    return as_document(manual.text(), source, title=manual.title(), is_markdown=True)


class Manual:
    """One page."""

    def __init__(self, text: str) -> None:
        self._page = Page()
        self._calls = self._handlers()
        self._roff = Roff(text, {*self._calls, *CALLABLE, *SILENT})
        self._inline = Inline(self._page, self._roff.said)
        self._name = self._section = self._heading = ""
        self._lists: list[str] = []
        self._margins: list[int] = []
        self._needs_tag = False
        self._is_in_head = False
        self._table: list[str] | None = None
        self._link = ""
        self._heading_level = 0

    def text(self) -> str:
        """Return the page as Markdown."""
        for line in self._roff.lines():
            if self._table is not None:
                self._row(line)
            elif line.macro:
                self._macro(line)
            else:
                self._text(line.raw)
            self._after(line)
        title = self.title()
        return (f"# {title}\n\n" if title else "") + self._page.whole()

    def title(self) -> str | None:
        """Return name(section), with the name as the page itself writes it."""
        if not self._name:
            return None
        found = NAMED.search(self._page.whole())
        name = found[1] if found and found[1].lower() == self._name.lower() else self._name
        name = name.lower() if name == self._name and name.isupper() else name
        return f"{name}({self._section})" if self._section else name

    # What a line does ------------------------------------------------------------------------------------

    def _text(self, raw: str) -> None:
        if self._heading_level:
            self._head(self._heading_level, self._roff.said(raw))
            return
        if not raw.strip() and not self._page.is_literal:
            self._page.end_paragraph()
            return
        if raw[:1] in {" ", "\t"} and not self._page.is_literal:
            self._page.end_line()
        is_cut = raw.endswith("\\c")
        if not raw:
            self._page.end_paragraph()
        self._page.write(self._roff.said(raw))
        if is_cut:
            self._page.glue()
        elif self._page.is_literal:
            self._page.end_line()

    def _macro(self, line: Line) -> None:
        handler = self._calls.get(line.macro)
        if handler is not None:
            handler(line.words)
        elif line.macro in CALLABLE:
            if self._heading == "SYNOPSIS" and line.macro in CALLS:
                self._page.end_line()
            self._inline.write((Word(line.macro), *line.words))
        elif line.macro not in SILENT:
            self._write(line.words)
        if self._page.is_literal and line.macro not in {"Ns", "Xo", "Sm"}:
            self._page.end_line()

    def _after(self, line: Line) -> None:
        """End the head of an item when its line is over."""
        if self._is_in_head and not self._inline.is_extended:
            self._is_in_head = False
            self._page.end_line()
        if self._needs_tag and not self._page.is_blank and not line.raw.endswith("\\c"):
            self._needs_tag = False
            self._page.end_line()

    # Macros ----------------------------------------------------------------------------------------------

    def _handlers(self) -> dict[str, Callable[[Sequence[Word]], None]]:
        page = self._page
        paragraph = dict.fromkeys(("PP", "P", "LP", "HP"), self._end_items)
        break_ = dict.fromkeys(("Pp", "Lp", "sp", "Sp"), lambda _: page.end_paragraph())
        literal = dict.fromkeys(("nf", "EX", "Vb"), lambda _: page.set_literal(literal=True))
        filled = dict.fromkeys(("fi", "EE", "Ve"), lambda _: page.set_literal(literal=False))
        return {
            **paragraph,
            **break_,
            **literal,
            **filled,
            **dict.fromkeys(FONTS, self._write),
            **dict.fromkeys(TURNS, self._turns),
            **dict.fromkeys(("TH", "Dt"), self._name_page),
            **dict.fromkeys(("SH", "Sh"), lambda words: self._begin_head(2, words)),
            **dict.fromkeys(("SS", "Ss"), lambda words: self._begin_head(3, words)),
            **dict.fromkeys(("UR", "MT"), self._begin_link),
            **dict.fromkeys(("UE", "ME"), self._end_link),
            **dict.fromkeys(("br", "Ek", "Rs", "YS"), lambda _: page.end_line()),
            **dict.fromkeys(("D1", "Dl"), self._display_line),
            **dict.fromkeys(("TP", "TQ"), self._tag),
            "IP": self._item,
            "RS": self._indent,
            "RE": self._outdent,
            "SY": self._synopsis,
            "OP": self._option,
            "TS": self._begin_table,
            **self._mdoc_handlers(),
        }

    def _mdoc_handlers(self) -> dict[str, Callable[[Sequence[Word]], None]]:
        return {
            "Nd": self._describe,
            "Bl": self._begin_list,
            "It": self._mdoc_item,
            "El": self._end_list,
            "Bd": self._begin_display,
            "Ed": self._end_display,
            "Sm": self._spacing,
            "Fd": self._write,
            "Fo": self._begin_function,
            "Fc": self._end_function,
            "Ex": self._exits,
            "Rv": self._returns,
            "Re": self._end_reference,
        }

    def _write(self, words: Sequence[Word]) -> None:
        if self._heading_level and words:
            self._head(self._heading_level, self._joined(words))
            return
        self._page.write(self._joined(words))
        if words and words[-1].raw.endswith("\\c"):
            self._page.glue()

    def _joined(self, words: Sequence[Word], between: str = " ") -> str:
        return between.join(self._roff.said(word.raw) for word in words)

    def _turns(self, words: Sequence[Word]) -> None:
        self._write([Word("".join(word.raw for word in words))] if words else [])

    def _name_page(self, words: Sequence[Word]) -> None:
        self._name, self._section = [*(self._roff.said(word.raw) for word in words), "", ""][:2]

    def _begin_head(self, level: int, words: Sequence[Word]) -> None:
        if words:
            self._head(level, self._joined(words))
        else:
            self._heading_level = level

    def _head(self, level: int, text: str) -> None:
        self._heading_level = 0
        self._needs_tag = self._is_in_head = False
        self._lists.clear()
        self._margins.clear()
        self._page.heading(level, text)
        if level == 2:
            self._heading = text.strip().upper()

    def _end_items(self, _: Sequence[Word]) -> None:
        self._page.end_paragraph()
        self._page.depth = self._margins[-1] if self._margins else 0

    def _tag(self, _: Sequence[Word]) -> None:
        self._begin_item("- ")
        self._needs_tag = True

    def _begin_item(self, marker: str) -> None:
        self._page.end_line()
        self._page.depth = (self._margins[-1] if self._margins else 0) + 1
        self._page.begin_item(marker)

    def _item(self, words: Sequence[Word]) -> None:
        said = self._roff.said(words[0].raw).strip(f" {SPACE}") if words else ""
        if not said:
            self._page.end_paragraph()
            self._page.depth = (self._margins[-1] if self._margins else 0) + 1
        elif said in BULLETS:
            self._begin_item("- ")
        elif NUMBERED.fullmatch(said):
            self._begin_item(f"{said} ")
        else:
            self._begin_item("- ")
            self._page.write(said)
            self._page.end_line()

    def _indent(self, _: Sequence[Word]) -> None:
        self._page.end_line()
        self._margins.append(self._page.depth if self._page.depth > self._margin() else self._margin() + 1)
        self._page.depth = self._margins[-1]

    def _outdent(self, _: Sequence[Word]) -> None:
        self._page.end_line()
        if self._margins:
            # What was within the item of a list goes on in it.
            self._page.depth = self._margins.pop()

    def _margin(self) -> int:
        return self._margins[-1] if self._margins else 0

    def _begin_link(self, words: Sequence[Word]) -> None:
        self._link = self._joined(words[:1])

    def _end_link(self, words: Sequence[Word]) -> None:
        self._page.write(f"<{self._link}>")
        self._page.write(self._joined(words), glued=True)

    def _synopsis(self, words: Sequence[Word]) -> None:
        self._page.end_line()
        self._write(words)

    def _option(self, words: Sequence[Word]) -> None:
        self._page.write(f"[{self._joined(words)}]")

    def _begin_table(self, _: Sequence[Word]) -> None:
        self._page.end_paragraph()
        self._table = []

    def _row(self, line: Line) -> None:
        table = self._table or []
        if line.macro != "TE":
            table.append(line.raw)
            self._table = table
            return
        self._table = None
        for cells in rows(table):
            self._page.write(row([self._roff.said(cell) for cell in cells]).rstrip("\n"))
            self._page.end_line()
        self._page.end_paragraph()

    # mdoc ------------------------------------------------------------------------------------------------

    def _describe(self, words: Sequence[Word]) -> None:
        self._page.write("-")
        self._inline.write((Word("No"), *words))

    def _begin_list(self, words: Sequence[Word]) -> None:
        self._page.begin_list()
        kind = next((word.raw for word in words if word.raw in KINDS), "")
        self._lists.append("\t" if any(word.raw == "-column" for word in words) else KINDS.get(kind, "- "))
        self._page.depth = len(self._lists) - (self._lists[-1] in {"", "\t"})

    def _mdoc_item(self, words: Sequence[Word]) -> None:
        marker = self._lists[-1] if self._lists else ""
        is_row = marker == "\t"
        self._page.end_line()
        self._page.depth = len(self._lists) - (is_row or not marker)
        if marker and not is_row:
            self._page.begin_item(marker)
        if is_row:
            words = [word if "\t" not in word.raw else Word(word.raw, is_quoted=True) for word in words]
        self._inline.write((Word("No"), *words) if words else ())
        self._is_in_head = marker == "- " and bool(words)

    def _end_list(self, _: Sequence[Word]) -> None:
        self._page.end_paragraph()
        if self._lists:
            self._lists.pop()
        self._page.depth = len(self._lists)

    def _begin_display(self, words: Sequence[Word]) -> None:
        self._page.end_paragraph()
        if any(word.raw in LITERAL for word in words):
            self._page.set_literal(literal=True)

    def _end_display(self, _: Sequence[Word]) -> None:
        self._page.set_literal(literal=False)
        self._page.end_paragraph()

    def _display_line(self, words: Sequence[Word]) -> None:
        self._page.end_paragraph()
        self._page.set_literal(literal=True)
        self._inline.write((Word("No"), *words))
        self._page.set_literal(literal=False)

    def _spacing(self, words: Sequence[Word]) -> None:
        said = words[0].raw if words else ""
        self._page.is_spaced = said == "on" or (said != "off" and not self._page.is_spaced)

    def _begin_function(self, words: Sequence[Word]) -> None:
        self._page.write(f"{self._joined(words)}(")
        self._page.glue()

    def _end_function(self, words: Sequence[Word]) -> None:
        self._page.write(")", glued=True)
        self._inline.write((Word("No"), *words))

    def _exits(self, words: Sequence[Word]) -> None:
        names = self._joined([word for word in words if word.raw != "-std"]) or self._inline.name
        self._page.write(f"The {names} utility exits 0 on success, and >0 if an error occurs.")

    def _returns(self, words: Sequence[Word]) -> None:
        names = self._joined([word for word in words if word.raw not in {"-std", *CLOSING}])
        self._page.write(
            f"The {names or self._inline.name}() function returns the value 0 if successful; otherwise the "
            "value -1 is returned and the global variable errno is set to indicate the error."
        )

    def _end_reference(self, _: Sequence[Word]) -> None:
        self._page.end_paragraph()

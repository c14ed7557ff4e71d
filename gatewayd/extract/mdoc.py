"""The macros of mdoc that stand within a line: fonts, quotes, options, references."""

from collections.abc import Callable, Sequence
from typing import Final

from gatewayd.extract.manpage import Page
from gatewayd.extract.roff import Word

CLOSING: Final = {".", ",", ":", ";", ")", "]", "?", "!"}
OPENING: Final = {"(", "["}
# What stands around the rest of the line, or, by two macros, around lines.
ENCLOSURES: Final = {
    **dict.fromkeys(("Op", "Bq"), "[]"),
    **dict.fromkeys(("Dq", "Qq"), '""'),
    **dict.fromkeys(("Sq", "Ql"), "''"),
    "Pq": "()",
    "Brq": "{}",
    "Aq": "<>",
    "En": ("", ""),
}
BEGINNINGS: Final = {
    **dict.fromkeys(("Oo", "Bo"), "["),
    **dict.fromkeys(("Do", "Qo"), '"'),
    **dict.fromkeys(("Eo", "Xo"), ""),
    "Po": "(",
    "Bro": "{",
    "Ao": "<",
    "So": "'",
}
ENDINGS: Final = {
    **dict.fromkeys(("Oc", "Bc"), "]"),
    **dict.fromkeys(("Dc", "Qc"), '"'),
    **dict.fromkeys(("Ec", "Xc"), ""),
    "Pc": ")",
    "Brc": "}",
    "Ac": ">",
    "Sc": "'",
}
# Macros whose words are kept as they are.
PLAIN: Final = {
    *("Ic", "Ar", "Cm", "Pa", "Ev", "Sx", "Li", "Dv", "Em", "Sy", "No", "Er", "Fa", "Ft", "Va", "Vt", "Ad"),
    *("Tn", "Ms", "Mt", "Cd", "An", "St", "Lb", "Bf", "Nm", "Fl", "Ta", "Ux", "Bx", "Nx", "Fx", "Ox", "Dx"),
    *("At", "Bsx", "Bt", "Ud"),
}
SPECIAL: Final = {"Ns", "Ap", "Pf", "Xr", "Fn", "Lk", "In"}
CALLABLE: Final = {*ENCLOSURES, *BEGINNINGS, *ENDINGS, *PLAIN, *SPECIAL}
SYSTEMS: Final = {"Nx": "NetBSD", "Fx": "FreeBSD", "Ox": "OpenBSD", "Dx": "DragonFly", "Bsx": "BSD/OS"}
# What a macro says that stands alone.
ALONE: Final = {
    **SYSTEMS,
    "Ar": "file ...",
    "Pa": "~",
    "Mt": "~",
    "Ux": "UNIX",
    "Bx": "BSD",
    "At": "AT&T UNIX",
    "Bt": "is currently in beta test.",
    "Ud": "currently under development.",
}


class Inline:
    """Writes lines of calls onto a page. `name` is what the page is about, once it was said."""

    def __init__(self, page: Page, said: Callable[[str], str]) -> None:
        self._page = page
        self._said = said
        self.name = ""
        self.is_extended = False
        """Whether the head of an item goes on in the next lines."""

    def write(self, words: Sequence[Word]) -> None:
        """Write words, of which some call macros."""
        words, after = _without_closing(words)
        closers: list[str] = []
        place = 0
        while place < len(words):
            word = words[place]
            if word.is_quoted or word.raw not in CALLABLE:
                self._plain(word)
                place += 1
                continue
            end = place + 1
            while end < len(words) and (words[end].is_quoted or words[end].raw not in CALLABLE):
                end += 1
            self._call(word.raw, words[place + 1 : end], closers, is_last=end == len(words) and not after)
            place = end
        for closer in reversed(closers):
            self._page.write(closer, glued=True)
        for word in after:
            self._plain(word)

    def _plain(self, word: Word) -> None:
        is_closing = not word.is_quoted and word.raw in CLOSING
        self._page.write(self._said(word.raw), glued=is_closing)
        if not word.is_quoted and word.raw in OPENING:
            self._page.glue()

    def _all(self, words: Sequence[Word]) -> None:
        for word in words:
            self._plain(word)

    def _call(self, macro: str, words: Sequence[Word], closers: list[str], *, is_last: bool) -> None:
        if macro in ENCLOSURES:
            self._page.write(ENCLOSURES[macro][0])
            self._page.glue()
            closers.append(ENCLOSURES[macro][1])
            self._all(words)
        elif macro in BEGINNINGS:
            self._page.write(BEGINNINGS[macro])
            if macro != "Xo":
                self._page.glue()
            self.is_extended = self.is_extended or macro == "Xo"
            self._all(words)
        elif macro in ENDINGS:
            self._page.write(ENDINGS[macro], glued=True)
            self.is_extended = self.is_extended and macro != "Xc"
            self._all(words)
        elif macro == "Fl":
            self._options(words, is_last=is_last)
        elif macro in SPECIAL:
            self._special(macro, words)
        else:
            self._font(macro, words)

    def _font(self, macro: str, words: Sequence[Word]) -> None:
        if macro == "Ta":
            self._page.glue()
            self._page.write("\t")
            self._page.glue()
        elif not words or (words[0].raw in CLOSING and not words[0].is_quoted):
            self._page.write(self.name if macro == "Nm" else ALONE.get(macro, ""))
        elif macro in SYSTEMS:
            self._page.write(SYSTEMS[macro])
        elif macro == "Bx":
            self._page.write(f"{self._said(words[0].raw)}BSD")
            words = words[1:]
        elif macro == "Nm" and not self.name:
            self.name = " ".join(self._said(word.raw) for word in words)
        elif macro == "An" and words[0].raw in {"-split", "-nosplit"}:
            words = words[1:]
        self._all(words)

    def _options(self, words: Sequence[Word], *, is_last: bool) -> None:
        if not words:
            self._page.write("-")
            if not is_last:
                self._page.glue()
        for number, word in enumerate(words):
            if word.is_quoted or word.raw not in CLOSING | OPENING | {"|"}:
                self._page.write(f"-{self._said(word.raw)}")
            else:
                if not number and word.raw in CLOSING:
                    self._page.write("-")
                self._plain(word)

    def _special(self, macro: str, words: Sequence[Word]) -> None:
        first = self._said(words[0].raw) if words else ""
        rest = words[1:]
        if macro == "Ns":
            self._page.glue()
            rest = words
        elif macro == "Ap":
            self._page.write("'", glued=True)
            self._page.glue()
            rest = words
        elif macro == "Pf":
            self._page.write(first)
            self._page.glue()
        elif macro == "Xr":
            has_section = rest and rest[0].raw not in CLOSING
            self._page.write(f"{first}({self._said(rest[0].raw)})" if has_section else first)
            rest = rest[1:] if has_section else rest
        elif macro == "In":
            self._page.write(f"<{first}>")
        elif macro == "Fn":
            self._function(first, rest)
            return
        else:
            self._page.write(first)
        self._all(rest)

    def _function(self, name: str, words: Sequence[Word]) -> None:
        said, after = _without_closing(words)
        self._page.write(f"{name}({', '.join(self._said(word.raw) for word in said)})")
        self._all(after)


def _without_closing(words: Sequence[Word]) -> tuple[Sequence[Word], Sequence[Word]]:
    """Return the words before the punctuation at the end, and that."""
    end = len(words)
    while end and words[end - 1].raw in CLOSING and not words[end - 1].is_quoted:
        end -= 1
    return words[:end], words[end:]

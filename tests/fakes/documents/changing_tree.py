"""A tree of small documents of many kinds that changes from one ingest to the next."""

import email.message
import hashlib
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import docx

from tests.fakes.documents.makers import SENTENCE, epub, opendocument, page, pdf, saved, workbook

SYLLABLES = ("ba", "de", "fi", "go", "lu", "ma", "ne", "po", "ri", "su", "ta", "vo", "ki", "zen")
DIRECTORIES = ("", "guides", "guides/old", "notes", "reports")

Maker = Callable[[Sequence[str]], bytes]


def _word(paragraphs: Sequence[str]) -> bytes:
    document = docx.Document()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    return saved(document)


def _mail(paragraphs: Sequence[str]) -> bytes:
    mail = email.message.EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = "Minutes", "ann@example.org", "bo@example.org"
    mail.set_content("\n\n".join(paragraphs))
    return bytes(mail)


def _lines(paragraphs: Sequence[str]) -> list[str]:
    return [line for paragraph in paragraphs for line in _wrapped(paragraph)]


def _wrapped(paragraph: str) -> list[str]:
    words = paragraph.split()
    return [" ".join(words[at : at + 10]) for at in range(0, len(words), 10)]


def _open_text(paragraphs: Sequence[str]) -> bytes:
    return opendocument("text", "".join(f"<text:p>{paragraph}</text:p>" for paragraph in paragraphs))


MAKERS: Mapping[str, Maker] = {
    "txt": lambda paragraphs: "\n\n".join(paragraphs).encode(),
    "md": lambda paragraphs: ("# Notes\n\n" + "\n\n## More\n\n".join(paragraphs)).encode(),
    "pdf": lambda paragraphs: pdf(["\n".join(_wrapped(paragraph)) for paragraph in paragraphs]),
    "docx": _word,
    "html": lambda paragraphs: page("".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)),
    "csv": lambda paragraphs: "\n".join(_lines(paragraphs)).replace(" ", ",").encode(),
    "json": lambda paragraphs: json.dumps({"notes": list(paragraphs)}, indent=1).encode(),
    "xlsx": lambda paragraphs: workbook({"Notes": [line.split() for line in _lines(paragraphs)]}),
    "eml": _mail,
    "odt": _open_text,
    "epub": lambda paragraphs: epub({f"Part {n}": text for n, text in enumerate(paragraphs)}),
    "log": lambda paragraphs: "\r\n\r\n".join(paragraphs).encode("utf-16"),
}

BAD: Mapping[str, Callable[[str], bytes]] = {
    "pdf": lambda mark: b"%PDF-1.7\n" + mark.encode(),
    "docx": lambda mark: b"PK\x03\x04" + mark.encode() * 9,
    "txt": lambda _: b"",
}
"""Documents that cannot be read."""


@dataclass(frozen=True)
class Document:
    """One version of a file; a search for `mark` must find it, unless it is bad."""

    mark: str
    content: bytes
    is_bad: bool = False

    @property
    def checksum(self) -> str:
        """The SHA-256 of the bytes."""
        return hashlib.sha256(self.content).hexdigest()


class Tree:
    """Files by path; which ones, and what they say, comes from the seed."""

    def __init__(self, seed: int, count: int, *, bad: int = 0, paragraphs: int = 4) -> None:
        self._random = random.Random(seed)
        self._count = 0
        self._paragraphs = paragraphs
        self.files: dict[str, Document] = {}
        for number in range(count):
            self._add(is_bad=number < bad)

    def change(self, share: float = 0.5) -> None:
        """Change a share of the files, remove some, and add as many."""
        paths = self._random.sample(sorted(self.files), round(len(self.files) * share))
        removed = paths[: len(paths) // 4]
        for path in paths:
            old = self.files.pop(path)
            if path not in removed:
                self.files[path] = self._document(path.rpartition(".")[2], is_bad=old.is_bad)
        for _ in removed:
            self._add()

    def _add(self, *, is_bad: bool = False) -> None:
        kinds = list(BAD if is_bad else MAKERS)
        kind = kinds[self._count % len(kinds)]
        folder = self._random.choice(DIRECTORIES)
        name = f"{'bad' if is_bad else 'file'}-{self._count:04d}.{kind}"
        self.files[f"{folder}/{name}" if folder else name] = self._document(kind, is_bad=is_bad)

    def _document(self, kind: str, *, is_bad: bool) -> Document:
        self._count += 1
        mark = f"mark{self._count:05d}x"
        if is_bad:
            return Document(mark, BAD[kind](mark), is_bad=True)
        length = self._random.randint(1, self._paragraphs)
        return Document(mark, MAKERS[kind]([self._paragraph(mark, number) for number in range(length)]))

    def _paragraph(self, mark: str, number: int) -> str:
        words = ["".join(self._random.choices(SYLLABLES, k=3)) for _ in range(70)]
        return f"Paragraph {number} of {mark} says: {' '.join(words)}. {SENTENCE}"

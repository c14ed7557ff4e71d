"""Questions that people asked about programs, in the documentation of these, and the names of settings.

A question is the heading of an answer in a list of frequent questions, and is taken out of the document: what
is found is found by the answer. A name is that of a setting, whose description has it for a heading.
"""

import itertools
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from tests.corpus.fetch import Archive, archives, opened

PACKAGES: Final = {
    "celery": ("celery==5.7.0", "6a5dfcf6662287204f009a02002b9e66c83d4105e47ebabdc7079108772fc6f0"),
    "django": ("django==5.2.19", "ad03d8abc51dbff95ebf34b27123cf0c26a3b62db7ba0cd520783686362533d1"),
    "scrapy": ("scrapy==2.19.0", "34130726582b64c91531162ab277c4053e558876d49ba219cb43679e71d80a87"),
}
DOCUMENTS: Final = re.compile(
    r"(celery/docs|django/docs/(faq|howto|intro|topics)|docutils/docs|scrapy/docs)/.*\.(rst|txt)"
    r"|django/docs/ref/settings\.txt|docutils/FAQ\.rst"
)
ASKED: Final = re.compile(r"(celery|scrapy)-docs-faq\.rst|django-docs-faq-.*|docutils-FAQ\.rst")
NAMED: Final = re.compile(r"django-docs-ref-settings\.txt|celery-docs-userguide-configuration\.rst")
NAME: Final = re.compile(r"``([A-Za-z]+(?:_[A-Za-z]+)+)``")
UNDERLINE: Final = re.compile(r"([=\-~^\"'`*+#.:_])\1{3,}")
NAMES: Final = 60
TELLING: Final = 30
QUESTION: Final = "question"
NAMES_OF_SETTINGS: Final = "name"


@dataclass(frozen=True)
class Question:
    """What is asked, and the lines of its answer, which are nowhere else in that document."""

    kind: str
    text: str
    document: str
    lines: frozenset[str]

    def is_answered_by(self, document: str, passage: str) -> bool:
        """Tell whether a passage holds a part of the answer."""
        text = " ".join(passage.split())
        return document == self.document and any(line in text for line in self.lines)


@dataclass(frozen=True)
class Section:
    """A heading, the lines that it takes, and those that follow up to the next one."""

    title: str
    heading: range
    body: Sequence[str]


@dataclass(frozen=True)
class Examination:
    """Documents by name, and questions about them."""

    documents: Mapping[str, str]
    questions: Sequence[Question]


def examination() -> Examination:
    """Fetch the documents and take the questions out of them; raises FetchError."""
    wanted = {"docutils": archives()["docutils"]}
    for name, (package, sha256) in PACKAGES.items():
        wanted[name] = Archive(name, package, is_debian=False, sha256=sha256)
    documents = {}
    for name, archive in sorted(wanted.items()):
        with opened(archive) as tar:
            for member in tar:
                path = str(PurePosixPath(name, *PurePosixPath(member.name).parts[1:]))
                if DOCUMENTS.fullmatch(path) and (file := tar.extractfile(member)) is not None:
                    documents[path.replace("/", "-")] = file.read().decode()
    return examined(documents)


def examined(documents: Mapping[str, str]) -> Examination:
    """Return documents without the questions that they answer, and these."""
    kept = dict(documents)
    questions: list[Question] = []
    for name, text in sorted(documents.items()):
        if ASKED.fullmatch(name):
            found = [section for section in sections(text) if section.title.endswith("?")]
            questions += _questions(QUESTION, name, text, found)
            kept[name] = _without(text, found)
        if NAMED.fullmatch(name):
            named = [section for section in sections(text) if NAME.fullmatch(section.title)]
            asked = list(_questions(NAMES_OF_SETTINGS, name, text, named))
            questions += random.Random(7).sample(asked, min(NAMES, len(asked)))
    return Examination(kept, questions)


def sections(text: str) -> Iterator[Section]:
    """Return the sections of a text in reStructuredText."""
    lines = text.splitlines()
    headings = [
        range(number - _has_overline(lines, number), number + 2)
        for number, (line, below) in enumerate(itertools.pairwise(lines))
        if line.strip() and not UNDERLINE.fullmatch(line.strip()) and UNDERLINE.fullmatch(below.strip())
    ]
    ends = [heading.start for heading in headings[1:]] + [len(lines)]
    for heading, end in zip(headings, ends, strict=True):
        yield Section(lines[heading.stop - 2].strip(), heading, lines[heading.stop : end])


def _has_overline(lines: Sequence[str], number: int) -> bool:
    return number > 0 and UNDERLINE.fullmatch(lines[number - 1].strip()) is not None


def _questions(kind: str, name: str, text: str, found: Sequence[Section]) -> Iterator[Question]:
    often = Counter(" ".join(line.split()) for line in text.splitlines())
    for section in found:
        lines = [" ".join(line.split()) for line in section.body]
        # Directives and the targets of links name what follows, and places far away.
        telling = frozenset(
            line for line in lines if len(line) >= TELLING and often[line] == 1 and not line.startswith(".. ")
        )
        if telling:
            yield Question(kind, section.title.replace("``", ""), name, telling)


def _without(text: str, found: Sequence[Section]) -> str:
    taken = {number for section in found for number in section.heading}
    return "\n".join(line for number, line in enumerate(text.splitlines()) if number not in taken) + "\n"

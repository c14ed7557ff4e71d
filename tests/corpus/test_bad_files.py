"""Documents that are damaged, locked, hostile or none, among good ones: each fails with its sentence."""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.corpus.stand import Ingested, opened_stand
from tests.fakes.documents.makers import (
    SENTENCE,
    archive,
    entities,
    expanding,
    old_workbook,
    opendocument,
    page,
    pdf,
    replaced,
    scanned_pdf,
    word,
    workbook,
    zipped,
)

# The default model is built in the state directory.
pytestmark = pytest.mark.timeout(300)

MIB = 2**20


def cut_pdf() -> bytes:
    """Return the first half of a document of 40 pages."""
    content = pdf([f"page {number}: {SENTENCE}" for number in range(40)])
    return content[: len(content) // 2]


def deep_zip() -> bytes:
    """Return an archive in an archive, and so on, of which the innermost is large."""
    content = bytes(MIB)
    for level in range(6):
        content = archive({f"{level}.zip": content})
    return content


def with_entities() -> bytes:
    """Return a Word document whose text is an entity of a billion texts."""
    return replaced(word(), "word/document.xml", f"{entities()}<x>&a9;</x>")


def windows_program() -> bytes:
    return b"MZ\x90\0\3\0\0\0" + bytes(56) + b"PE\0\0" + bytes(range(256)) * 40


def linux_program() -> bytes:
    return Path(sys.executable).resolve().read_bytes()[: 2 * MIB]


def picture() -> bytes:
    return b"\x89PNG\r\n\x1a\n" + bytes(2000)


BAD: Mapping[str, tuple[Callable[[], bytes], str]] = {
    "locked.pdf": (lambda: pdf(password="heron"), "it is encrypted; remove the password"),
    "cut.pdf": (cut_pdf, "it is damaged: its end is missing"),
    "scanned.pdf": (scanned_pdf, "no text was found in its 2 pages (scanned?)"),
    "bomb.docx": (lambda: expanding("word/more.xml", 400_000_000), "its archive expands to"),
    "nested.zip": (deep_zip, "it is an archive (zip)"),
    "entities.docx": (with_entities, "document type or entities"),
    "entities.odt": (
        lambda: opendocument("text", "<text:p>&a9;</text:p>", prolog=entities()),
        "document type or entities",
    ),
    "picture.png": (picture, "it is an image (PNG)"),
    "picture.pdf": (picture, "it is an image (PNG)"),
    "empty.txt": (bytes, "the file is empty"),
    "blank.txt": (lambda: b" \n\t\n", "no text was found"),
    "nul.txt": (lambda: b"heron\0egret" * 100, "NUL bytes"),
    "setup.exe": (windows_program, "it is a program (Windows)"),
    "tool": (linux_program, "it is a program (ELF)"),
    "other.docx": (lambda: archive({"a.txt": "a", "b.txt": "b"}), "it is an archive (zip)"),
    "cut.docx": (lambda: word()[:2000], "damaged"),
    "cut.gz": (lambda: zipped(SENTENCE.encode() * 1000)[:60], "damaged"),
}
GOOD: Mapping[str, Callable[[], bytes]] = {
    "a-first.pdf": pdf,
    "m-middle.docx": word,
    "m-page.html": page,
    "z-last.xlsx": lambda: workbook({"Birds": [["Heron", SENTENCE]]}),
    "z-last.txt": lambda: b"The blue heron stands at the weir, too.",
    # What it holds is looked at, not what it is called.
    "z-sheet.doc": old_workbook,
}


@pytest.fixture(scope="module")
def ingested(home: Path) -> Iterator[Ingested]:
    folder = home / "mixed"
    folder.mkdir()
    for name, make in {**GOOD, **{name: make for name, (make, _) in BAD.items()}}.items():
        (folder / name).write_bytes(make())
    with opened_stand(home / "state", INGEST_TIMEOUT="60") as stand:
        yield Ingested(stand, folder, stand.ingest(folder))


def test_the_good_ones_go_in(ingested: Ingested) -> None:
    assert ingested.run.counts == (len(GOOD), 0, 0, 0, len(BAD), 0), ingested.run
    assert ingested.run.status == 3
    ingested.stand.assert_whole()
    found = ingested.stand.ask("Where does the blue heron stand?", k=20)
    assert {hit.name for hit in found} <= GOOD.keys()
    assert {"a-first.pdf", "m-middle.docx", "z-last.txt"} <= {hit.name for hit in found}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_one_says_what_is_wrong(ingested: Ingested, name: str) -> None:
    sentence = ingested.run.failures[name]
    assert BAD[name][1] in sentence
    assert not sentence.endswith(".")


def test_they_are_not_tried_again_unless_asked(ingested: Ingested) -> None:
    again = ingested.stand.ingest(ingested.folder)
    assert again.counts == (0, 0, 0, len(GOOD), len(BAD), 0)
    assert again.report["uploaded"] == 0
    retried = ingested.stand.ingest(ingested.folder, "--retry")
    assert retried.counts == (0, 0, 0, len(GOOD), len(BAD), 0)
    assert retried.failures == ingested.run.failures

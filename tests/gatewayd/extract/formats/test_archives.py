import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from gatewayd.extract.formats.archives import open_archive, refuse_entities
from gatewayd.extract.records import DocumentLimits
from gatewayd.extract.text_builder import DocumentError
from tests.fakes.documents import makers as documents


def refusal(path: Path, limits: DocumentLimits) -> str:
    with pytest.raises(DocumentError) as caught:
        open_archive(path, limits)
    return caught.value.reason


def test_limits_of_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(documents.archive({"a": b"x" * 2_000_000, "b": b"", "c": b"1234567" * 100}))
    limits = DocumentLimits(ratio=100_000)
    with open_archive(path, limits) as archive:
        assert archive.namelist() == ["a", "b", "c"]
    assert "has 3 entries" in refusal(path, replace(limits, entries=2))
    assert "expands to 2 MB, more than 1 MB" in refusal(path, replace(limits, expanded=1_000_000))
    assert "an entry of its archive expands to 2 MB" in refusal(path, replace(limits, entry=1_000_000))
    assert "more than 400 times" in refusal(path, DocumentLimits())


def test_an_entry_that_says_less_than_it_holds_gives_no_more(tmp_path: Path) -> None:
    path = tmp_path / "a"
    packed = documents.archive({"a": b"x" * 50_000})
    path.write_bytes(packed.replace((50_000).to_bytes(4, "little"), (10).to_bytes(4, "little")))
    with open_archive(path, DocumentLimits()) as archive, pytest.raises(zipfile.BadZipFile):
        archive.read("a")


@pytest.mark.parametrize(
    "xml",
    [
        b"<!DOCTYPE x><x/>",
        b"\xef\xbb\xbf<?xml version='1.0'?><!-- " + b"y" * 9000 + b" --><!DOCTYPE x []><x/>",
        '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE x><x/>'.encode("utf-16"),
        documents.entities().encode() + b"<x>&a9;</x>",
        b'<?xml version="1.0" encoding="cp037"?>' + b"<x/>",
    ],
    ids=["plain", "after a comment", "utf-16", "entities", "unknown encoding"],
)
def test_declared_types_are_refused_in_any_entry(tmp_path: Path, xml: bytes) -> None:
    path = tmp_path / "a"
    path.write_bytes(documents.archive({"a.png": b"\x89PNG", "b.xml": b"<x/>", "any": xml}))
    with open_archive(path, DocumentLimits()) as archive, pytest.raises(DocumentError, match="declares"):
        refuse_entities(archive)


def test_plain_xml_and_pictures_pass(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(
        documents.archive({"a": b"\x89PNG", "b": b"<x>&amp;<!DOCTYPE y></x>", "c": b"", "d/": b""})
    )
    with open_archive(path, DocumentLimits()) as archive:
        refuse_entities(archive)

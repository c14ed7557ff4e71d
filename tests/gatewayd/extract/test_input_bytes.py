import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from gatewayd.extract.input_bytes import max_document_bytes, read_bytes, read_gzip
from gatewayd.extract.records import DocumentLimits, DocumentSource
from gatewayd.extract.text_builder import DocumentError

SMALL = DocumentLimits(text=250, entry=1000)


@pytest.fixture
def source(tmp_path: Path) -> DocumentSource:
    return DocumentSource(tmp_path / "blob", "x", None, SMALL)


def test_a_file_is_read_up_to_the_limit(source: DocumentSource) -> None:
    source.path.write_bytes(b"x" * 1000)
    assert max_document_bytes(SMALL) == 1000
    assert read_bytes(source) == b"x" * 1000
    assert read_bytes(replace(source, data=b"given")) == b"given"
    source.path.write_bytes(b"x" * 1001)
    with pytest.raises(DocumentError, match="more than"):
        read_bytes(source)


def test_a_gzip_file_is_expanded_up_to_the_limit(source: DocumentSource) -> None:
    source.path.write_bytes(gzip.compress(b"a" * 400) + gzip.compress(b"b" * 600) + bytes(20))
    assert read_gzip(source) == b"a" * 400 + b"b" * 600
    source.path.write_bytes(gzip.compress(bytes(1001)))
    with pytest.raises(DocumentError, match="expands to more than"):
        read_gzip(source)


@pytest.mark.parametrize("kept", [8, 20, -1])
def test_a_gzip_file_that_is_cut_is_damaged(source: DocumentSource, kept: int) -> None:
    source.path.write_bytes(gzip.compress(bytes(range(200)))[:kept])
    with pytest.raises(DocumentError, match="its end is missing"):
        read_gzip(source)


def test_a_gzip_file_of_several_blocks_is_whole(source: DocumentSource) -> None:
    text = bytes(range(256)) * 4000
    source.path.write_bytes(gzip.compress(text, 0) + gzip.compress(text))
    assert read_gzip(replace(source, limits=DocumentLimits())) == text * 2

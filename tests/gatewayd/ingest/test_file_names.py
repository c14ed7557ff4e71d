"""Names of files are display text."""

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.file_names import clean_name, file_extension


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [
        ("a.txt", "a.txt"),
        ("../../etc/passwd", "passwd"),
        ("C:\\docs\\guide.pdf", "guide.pdf"),
        (" e\u0301t\u00e9 .md ", "\u00e9t\u00e9 .md"),
        ("x" * 255, "x" * 255),
    ],
)
def test_the_last_component_counts(name: str, cleaned: str) -> None:
    assert clean_name(name) == cleaned


@pytest.mark.parametrize(
    "name", ["", "dir/", "..", ".", " ", "a\0b", "a\nb", "\ud800", "x" * 256, "x" * 4000]
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(GatewayError) as refused:
        clean_name(name)
    assert (refused.value.kind, refused.value.param) == (ErrorKind.INVALID_REQUEST, "file")


@pytest.mark.parametrize(
    ("name", "found"), [("a.PDF", "pdf"), ("a.tar.gz", "gz"), ("README", ""), ("a.", "")]
)
def test_extensions(name: str, found: str) -> None:
    assert file_extension(name) == found

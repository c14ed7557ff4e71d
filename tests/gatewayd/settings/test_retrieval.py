"""The settings of documents: what differs from the other settings' kinds."""

from collections.abc import Callable
from typing import Any

import pytest

from gatewayd.settings import Settings

MIB = 2**20
Load = Callable[..., Settings]


@pytest.mark.parametrize(
    ("given", "size"),
    [("5", 5 * MIB), ("1.5", 3 * MIB // 2), ("5GiB", 5120 * MIB), ("100kB", 100_000), ("", 100 * MIB)],
)
def test_a_bare_file_size_is_in_mebibytes(load_text: Load, given: str, size: int) -> None:
    assert load_text(environ={"RAG_FILE_MAX_SIZE": given}).rag_file_max_size == size


def test_a_number_in_the_file_is_in_mebibytes(load_text: Load) -> None:
    assert load_text("rag_file_max_size = 7").rag_file_max_size == 7 * MIB


def test_extensions_are_compared_without_dot_and_case(load_text: Load) -> None:
    settings = load_text(environ={"RAG_ALLOWED_FILE_EXTENSIONS": ".PDF, md,"})
    assert settings.rag_allowed_file_extensions == ("pdf", "md")


def test_an_extension_is_one_word(problems: Callable[..., list[Any]]) -> None:
    assert "a list of file name extensions" in problems('rag_allowed_file_extensions = ["*.pdf"]')[0]


def test_a_prefix_keeps_its_blank(load_text: Load) -> None:
    assert load_text('rag_embedding_query_prefix = "ask: "').rag_embedding_query_prefix == "ask: "

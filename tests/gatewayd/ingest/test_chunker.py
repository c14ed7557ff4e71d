"""Chunks: where a text is cut, and what each chunk knows."""

import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gatewayd.ingest.chunker import OTHER_SCRIPTS, ChunkRules, split_text
from gatewayd.ingest.records import ExtractionResult, TextChunk, TextPart

RULES = ChunkRules()
SMALL = ChunkRules(size=40, overlap=8, tokens=20)
LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
PIECES = st.sampled_from(
    [
        "\n",
        "\n\n",
        " ",
        "# ",
        "## ",
        "- ",
        "> ",
        "```\n",
        "|",
        "word ",
        "Sentence. ",
        "日本語",
        "\r\n",
        "é",
        "👩‍👩‍👧",
    ]
)
TEXTS = st.lists(st.one_of(PIECES, st.text(LETTERS, max_size=30)), max_size=80).map("".join)


def cut_whole(text: str, rules: ChunkRules = RULES, *, is_markdown: bool = False) -> tuple[TextChunk, ...]:
    return split_text(text, [TextPart(0, len(text), is_markdown=is_markdown)], rules)


@settings(deadline=None)
@given(names=st.text(LETTERS, min_size=1, max_size=80), text=TEXTS)
@example(names="\u9e1f" * 40, text="word " * 40)
def test_rows_stand_below_the_names_of_their_columns(names: str, text: str) -> None:
    names = " ".join(names.split()) or "x"
    whole = f"{names}\n{text}"
    chunks = split_text(whole, [TextPart(0, len(whole), columns=(0, len(names)))], SMALL)
    extraction = ExtractionResult(whole, chunks)
    covered: set[int] = set()
    for chunk in chunks:
        assert len(extraction.passage(chunk)) <= SMALL.size
        assert sum(map(len, OTHER_SCRIPTS.findall(extraction.passage(chunk)))) <= SMALL.tokens
        assert (chunk.columns is None) == (chunk.start == 0)
        if chunk.columns is not None:
            assert names.startswith(whole[slice(*chunk.columns)])
            assert extraction.passage(chunk).endswith(f"\n{whole[chunk.start : chunk.end]}")
        covered.update(range(chunk.start, chunk.end))
    assert all(position in covered or char.isspace() for position, char in enumerate(whole))


def test_the_size_of_a_chunk_may_leave_no_room_for_names() -> None:
    text = "ab\ncd ef gh"
    chunks = split_text(text, [TextPart(0, len(text), columns=(0, 2))], ChunkRules(3, 0))
    assert [chunk.columns for chunk in chunks] == [None] * len(chunks)


@settings(deadline=None)
@given(text=TEXTS, is_markdown=st.booleans(), share=st.integers(0, 3))
@example(text="# A\n\x1c\n" + "x" * 50, is_markdown=True, share=2)
def test_every_character_is_in_a_bounded_chunk(text: str, is_markdown: bool, share: int) -> None:
    middle = len(text) * share // 3
    parts = [
        TextPart(0, middle, page=1, is_markdown=is_markdown),
        TextPart(middle, len(text), page=2, is_markdown=is_markdown),
    ]
    chunks = split_text(text, parts, SMALL)
    assert [chunk.number for chunk in chunks] == list(range(len(chunks)))
    covered: set[int] = set()
    for chunk in chunks:
        piece = text[chunk.start : chunk.end]
        assert piece.strip()
        assert len(piece) <= SMALL.size
        assert sum(map(len, OTHER_SCRIPTS.findall(piece))) <= SMALL.tokens
        assert chunk.end <= middle if chunk.page == 1 else chunk.start >= middle
        covered.update(range(chunk.start, chunk.end))
    assert all(position in covered or char.isspace() for position, char in enumerate(text))


@pytest.mark.parametrize("is_markdown", [False, True])
@pytest.mark.parametrize(
    "text", ["x" * 50_000, "word " * 10_000, "line of it\n\n" * 5_000, "日本語。" * 12_500, "日" * 50_000]
)
def test_long_texts_are_cut_without_gaps_and_with_overlap(text: str, is_markdown: bool) -> None:
    chunks = cut_whole(text, is_markdown=is_markdown)
    end = 0
    for chunk in chunks:
        assert chunk.end > end
        assert not text[end : chunk.start].strip()
        assert end - chunk.start <= RULES.overlap
        end = chunk.end
    assert not text[end:].strip()
    assert any(after.start < before.end for before, after in itertools.pairwise(chunks))


def test_a_line_of_two_megabytes_is_cut() -> None:
    chunks = cut_whole("a" * 2_000_000)
    assert [(chunk.start, chunk.end) for chunk in chunks[:3]] == [(0, 1000), (900, 1900), (1800, 2800)]
    assert chunks[-1].end == 2_000_000


def test_scripts_of_one_token_a_character_get_smaller_chunks() -> None:
    assert max(chunk.end - chunk.start for chunk in cut_whole("日" * 5000)) == 480
    assert max(chunk.end - chunk.start for chunk in cut_whole("ä" * 5000)) == 1000


def test_chunks_end_where_paragraphs_end() -> None:
    first, second = "One. " * 150, "Two. " * 150
    text = f"{first.strip()}\n\n{second.strip()}"
    assert [text[chunk.start : chunk.end] for chunk in cut_whole(text)] == [first.strip(), second.strip()]


def test_markdown_chunks_know_their_headings() -> None:
    body = "word " * 190
    text = (
        f"before\n\n# Guide ##\n\n{body}\n\n## Using C#\n\n{body}\n\n"
        f"```sh\n# no heading\n~~~\n# none\n```\n\n{body}\n\n### Deep\n\n{body}\n\n# Last\n\n{body}"
    )
    chunks = cut_whole(text, is_markdown=True)
    found = list(dict.fromkeys(chunk.heading for chunk in chunks))
    expected = [None, "Guide", "Guide > Using C#", "Guide > Using C# > Deep", "Last"]
    assert found == expected
    assert cut_whole(text)[-1].heading is None


def test_a_heading_of_a_hundred_thousand_blanks_takes_no_time() -> None:
    chunks = cut_whole("# " + " \t" * 50_000 + "x" * 500 + "\n\ntext", is_markdown=True)
    assert chunks[-1].heading == "x" * 120 + "..."


def test_parts_give_pages_and_labels() -> None:
    text = "first page second page"
    parts = [TextPart(0, 11, page=1), TextPart(11, 22, page=2, label="Sheet B")]
    assert split_text(text, parts, RULES) == (
        TextChunk(0, 0, 10, 1, None),
        TextChunk(1, 11, 22, 2, "Sheet B"),
    )


def test_headings_of_another_part_do_not_count() -> None:
    text = "# One\n\ntext\n\nmore"
    parts = [TextPart(0, 13, is_markdown=True), TextPart(13, 17, label="Chapter 2", is_markdown=True)]
    assert [chunk.heading for chunk in split_text(text, parts, RULES)] == ["One", "Chapter 2"]


def test_blank_parts_have_no_chunks() -> None:
    assert cut_whole(" \n\t\x1c " * 4000) == ()
    assert cut_whole("") == ()


def test_an_overlap_as_long_as_a_chunk_is_lowered() -> None:
    chunks = cut_whole("word " * 10, ChunkRules(size=10, overlap=10))
    assert chunks[-1].end == 49

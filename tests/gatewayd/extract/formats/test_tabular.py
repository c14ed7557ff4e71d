"""Tests for gatewayd.extract.formats.tabular."""

import gzip

import pytest

from gatewayd.extract.formats.tabular import find_header_line, write_sheet
from gatewayd.extract.text_builder import TextBuilder
from gatewayd.ingest.chunker import ChunkRules, split_text
from gatewayd.ingest.records import ExtractionResult
from tests.fakes.documents import makers as documents
from tests.fakes.documents.readers import reading

BIRDS = [["Bird", "Count", "Place"], *([f"Heron {number}", f"{number}", "Lake"] for number in range(200))]


def columns_of(*rows: list[str]) -> str | None:
    """Return the names of the columns that are found in a sheet."""
    draft = TextBuilder(10_000)
    write_sheet("S", rows, draft)
    document = draft.finish()
    [part] = document.parts
    return None if part.columns is None else document.text[slice(*part.columns)]


def passages_of(data: bytes, name: str) -> list[str]:
    document = reading(data, name)
    extraction = ExtractionResult(
        document.text, split_text(document.text, document.parts, ChunkRules(300, 50))
    )
    for chunk in extraction.chunks:
        assert (
            document.text[chunk.start : chunk.end] == extraction.passage(chunk)[-(chunk.end - chunk.start) :]
        )
        assert len(extraction.passage(chunk)) <= 300
    return [extraction.passage(chunk) for chunk in extraction.chunks]


@pytest.mark.parametrize("name", ["birds.xlsx", "birds.ods", "birds.csv", "birds.tsv", "birds.csv.gz"])
def test_every_passage_of_rows_has_the_names_of_the_columns(name: str) -> None:
    separator = "," if ".csv" in name else "\t"
    text = "\n".join(separator.join(cells) for cells in BIRDS).encode()
    data = {
        "birds.xlsx": documents.workbook({"Lake": BIRDS}),
        "birds.ods": documents.opendocument_sheet({"Lake": BIRDS}),
        "birds.csv.gz": gzip.compress(text),
    }.get(name, text)
    passages = passages_of(data, name)
    assert len(passages) > 5
    names = separator.join(BIRDS[0])
    for passage in passages:
        assert passage.count(names) == 1
        assert names in passage.splitlines()[:2]


def test_a_text_that_is_no_table_has_no_columns() -> None:
    text = "\n".join(",".join(cells) for cells in BIRDS)
    assert reading(text.encode(), "birds.txt").parts[0].columns is None
    assert reading(text.encode(), "birds", content_type="text/csv; charset=utf-8").parts[0].columns


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        ([["Bird", "Count"], ["Heron", "7"]], "Bird\tCount"),
        (
            [["Birds of the lake"], [], ["as of May"], ["Bird", "2024", "2025"], ["Heron", "7", "8"]],
            "Bird\t2024\t2025",
        ),
        ([["", "Bird", "Count"], ["1", "Heron", "7"]], "\tBird\tCount"),
        ([["Heron", "7"], ["Gull", "Count"]], None),
        ([["# at the lake", "today"], ["Bird", "Count"], ["Heron", "7"]], "Bird\tCount"),
        ([["Bird", "Count"], *[["Heron", "7"]] * 40], "Bird\tCount"),
        ([["Heron", "x" * 201]], None),
        ([["alone"]] * 12 + [["Bird", "Count"]], None),
        ([["only one"]], None),
    ],
)
def test_which_row_has_the_names_of_the_columns(rows: list[list[str]], columns: str | None) -> None:
    assert columns_of(*rows) == columns


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("Bird,Count\nHeron,7\n", "Bird,Count"),
        ("Bird;Count;\r\nHeron;7;x\r\n", "Bird;Count;"),
        ("# of the lake\n\nBird\tCount\nHeron\t7", "Bird\tCount"),
        ('"Bird\nof the lake","Count, if any"\nHeron,7\n', '"Bird\nof the lake","Count, if any"'),
        ("Bird|Count\nHeron|7", "Bird|Count"),
        ("# of the lake; of May; of 2024\nBird,Count\nHeron,7\n", "Bird,Count"),
        ("Bird\u2028of the lake,Count\x85,a\x0cb\nHeron,7,8\n", "Bird\u2028of the lake,Count\x85,a\x0cb"),
        ("Bird,Count\rHeron,7\r", "Bird,Count"),
        ("Heron,7\nGull,8\n", ""),
        ("no table at all\n", ""),
        ('"never closed\n' * 9, ""),
        ("", ""),
        ("a," * 200_000, ""),
        ('"' + "a" * 200_000 + '",b\n', ""),
    ],
)
def test_where_the_columns_of_a_table_are_named(text: str, columns: str) -> None:
    assert text[slice(*find_header_line(text))] == columns

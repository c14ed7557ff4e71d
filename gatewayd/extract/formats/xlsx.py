"""Text of workbooks: a part is a sheet, a line is a row, with a tab between cells."""

import datetime
from collections.abc import Iterable, Iterator
from typing import Any

import openpyxl

from gatewayd.extract.formats.archives import open_archive, refuse_entities
from gatewayd.extract.formats.tabular import write_sheet
from gatewayd.extract.records import DocumentSource, ExtractedDocument
from gatewayd.extract.text_builder import TextBuilder


def read(source: DocumentSource) -> ExtractedDocument:
    """Return the text of an .xlsx or .xlsm file: what formulas gave when it was saved."""
    with open_archive(source.path, source.limits) as archive:
        refuse_entities(archive)
    draft = TextBuilder(source.limits.text)
    # The library goes by the name of a path.
    with source.path.open("rb") as file:
        book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        for sheet in book.worksheets:
            # What a sheet says about its size is often wrong.
            sheet.reset_dimensions()
            write_sheet(sheet.title, format_rows(sheet.iter_rows(values_only=True)), draft)
        title = book.properties.title
    return draft.finish(title=title, nothing="its sheets are empty")


def format_rows(rows: Iterable[Iterable[Any]]) -> Iterator[list[str]]:
    """Yield the cells of rows as a person would write them."""
    for cells in rows:
        yield [format_cell(cell) for cell in cells]


def format_cell(value: Any) -> str:
    """Return the value of a cell as a person would write it."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime.datetime):
        is_day = value.time() == datetime.time()
        return value.date().isoformat() if is_day else value.isoformat(" ", "seconds")
    return str(value)

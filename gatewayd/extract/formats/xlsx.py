"""Text of Excel workbooks (.xlsx): a part per sheet, a line per row, a tab between cells."""

import datetime
from collections.abc import Iterable, Iterator
from typing import Any

import openpyxl

from gatewayd.extract.formats.archives import open_archive, refuse_entities
from gatewayd.extract.formats.tabular import write_sheet
from gatewayd.extract.records import DocumentSource, ExtractedDocument
from gatewayd.extract.text_builder import TextBuilder


def read(source: DocumentSource) -> ExtractedDocument:
    """Return the text of an .xlsx or .xlsm file, with the results of formulas that were saved in it."""
    with open_archive(source.path, source.limits) as archive:
        refuse_entities(archive)
    builder = TextBuilder(source.limits.text)
    # With a path openpyxl would check the suffix of the file name.
    with source.path.open("rb") as file:
        book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        for sheet in book.worksheets:
            # The dimensions that a sheet declares are often wrong.
            sheet.reset_dimensions()
            write_sheet(sheet.title, format_rows(sheet.iter_rows(values_only=True)), builder)
        title = book.properties.title
    return builder.finish(title=title, nothing="its sheets are empty")


def format_rows(rows: Iterable[Iterable[Any]]) -> Iterator[list[str]]:
    """Yield rows of cells as text."""
    for cells in rows:
        yield [format_cell(cell) for cell in cells]


def format_cell(value: Any) -> str:
    """Return the value of a cell as text: whole numbers without a fraction, midnights as dates."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime.datetime):
        is_day = value.time() == datetime.time()
        return value.date().isoformat() if is_day else value.isoformat(" ", "seconds")
    return str(value)

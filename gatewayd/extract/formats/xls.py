"""Text of workbooks in the old Excel format (.xls)."""

from types import TracebackType

import python_calamine

from gatewayd.extract.formats.tabular import write_sheet
from gatewayd.extract.formats.xlsx import format_rows
from gatewayd.extract.records import DocumentSource, ExtractedDocument
from gatewayd.extract.text_builder import ENCRYPTED, DocumentError, TextBuilder


class _Panics:
    """Converts a panic of calamine to DocumentError; Python has no name for its class."""

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and kind.__name__ == "PanicException":
            raise DocumentError("it is damaged: its records are invalid") from error


def read(source: DocumentSource) -> ExtractedDocument:
    """Return the text of an .xls file, a part per sheet."""
    builder = TextBuilder(source.limits.text)
    try:
        with _Panics(), python_calamine.CalamineWorkbook.from_path(source.path) as book:
            for name in book.sheet_names:
                write_sheet(name, format_rows(book.get_sheet_by_name(name).iter_rows()), builder)
    except python_calamine.PasswordError as error:
        raise DocumentError(ENCRYPTED) from error
    except python_calamine.CalamineError as error:
        raise DocumentError(f"it is damaged: {error}") from error
    return builder.finish(nothing="its sheets are empty")

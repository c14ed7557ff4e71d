"""One good document of each kind that is read, with SENTENCE in it."""

from collections.abc import Mapping
from typing import Final

from gatewayd.extract.records import Format
from tests.fakes import documents
from tests.fakes.documents import SENTENCE

GOOD: Final[Mapping[Format, bytes]] = {
    Format.PDF: documents.pdf(),
    Format.EPUB: documents.epub(),
    Format.DOCX: documents.word(),
    Format.PPTX: documents.slides(),
    Format.XLSX: documents.workbook({"S": [[SENTENCE]]}),
    Format.XLS: documents.old_workbook(cells=(SENTENCE,)),
    Format.ODT: documents.opendocument("text", f"<text:p>{SENTENCE}</text:p>"),
    Format.ODS: documents.opendocument(
        "spreadsheet",
        "<table:table table:name='S'><table:table-row><table:table-cell>"
        f"<text:p>{SENTENCE}</text:p></table:table-cell></table:table-row></table:table>",
    ),
    Format.ODP: documents.opendocument(
        "presentation", f"<draw:page><draw:frame><text:p>{SENTENCE}</text:p></draw:frame></draw:page>"
    ),
    Format.RTF: documents.rich_text(),
    Format.MAIL: documents.message(),
    Format.HTML: documents.page(),
    Format.MANUAL: f".TH X 1\n.SH NAME\n{SENTENCE}\n".encode(),
    Format.JSON: documents.notebook(),
    Format.MARKDOWN: f"# T\n\n{SENTENCE}\n".encode(),
    Format.TEXT: SENTENCE.encode(),
}

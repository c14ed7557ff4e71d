"""One good document of each kind that is read, with SENTENCE in it."""

from collections.abc import Mapping
from typing import Final

from gatewayd.extract.records import DocumentFormat
from tests.fakes.documents import makers as documents
from tests.fakes.documents.makers import SENTENCE

GOOD: Final[Mapping[DocumentFormat, bytes]] = {
    DocumentFormat.PDF: documents.pdf(),
    DocumentFormat.EPUB: documents.epub(),
    DocumentFormat.DOCX: documents.word(),
    DocumentFormat.PPTX: documents.slides(),
    DocumentFormat.XLSX: documents.workbook({"S": [[SENTENCE]]}),
    DocumentFormat.XLS: documents.old_workbook(cells=(SENTENCE,)),
    DocumentFormat.ODT: documents.opendocument("text", f"<text:p>{SENTENCE}</text:p>"),
    DocumentFormat.ODS: documents.opendocument(
        "spreadsheet",
        "<table:table table:name='S'><table:table-row><table:table-cell>"
        f"<text:p>{SENTENCE}</text:p></table:table-cell></table:table-row></table:table>",
    ),
    DocumentFormat.ODP: documents.opendocument(
        "presentation", f"<draw:page><draw:frame><text:p>{SENTENCE}</text:p></draw:frame></draw:page>"
    ),
    DocumentFormat.RTF: documents.rich_text(),
    DocumentFormat.MAIL: documents.message(),
    DocumentFormat.HTML: documents.page(),
    DocumentFormat.MANUAL: f".TH X 1\n.SH NAME\n{SENTENCE}\n".encode(),
    DocumentFormat.JSON: documents.notebook(),
    DocumentFormat.MARKDOWN: f"# T\n\n{SENTENCE}\n".encode(),
    DocumentFormat.TEXT: SENTENCE.encode(),
}

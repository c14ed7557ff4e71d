"""Format detection by content; name and media type only decide between kinds of text."""

import re
import struct
from pathlib import PurePath
from typing import BinaryIO, Final

from gatewayd.extract.formats.archives import open_archive
from gatewayd.extract.records import DocumentFormat, DocumentSource
from gatewayd.extract.text_builder import ENCRYPTED, DocumentError

HEAD_BYTES: Final = 8192
ZIP: Final = b"PK\x03\x04"
OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
GZIP: Final = b"\x1f\x8b\x08"

IMAGE: Final = "it is an image ({}), which has no text to read"
SOUND: Final = "it is audio ({}), which is not transcribed here"
VIDEO: Final = "it is a video ({}), which is not transcribed here"
ARCHIVE: Final = "it is an archive ({}); unpack it and upload the documents in it"
PROGRAM: Final = "it is a program ({}), not a document"
DATA: Final = "it is a data file ({}), not a document"

# Signatures of refused files: offset, bytes, sentence, name of the format. A signature that a text may start
# with counts only if the file also has NUL bytes.
REFUSED_SIGNATURES: Final = (
    (0, b"\x89PNG\r\n\x1a\n", IMAGE, "PNG"),
    (0, b"\xff\xd8\xff", IMAGE, "JPEG"),
    (0, b"GIF87a", IMAGE, "GIF"),
    (0, b"GIF89a", IMAGE, "GIF"),
    (0, b"II*\0", IMAGE, "TIFF"),
    (0, b"MM\0*", IMAGE, "TIFF"),
    (0, b"BM", IMAGE, "BMP"),
    (0, b"\0\0\1\0", IMAGE, "icon"),
    (0, b"8BPS", IMAGE, "Photoshop"),
    (8, b"WEBP", IMAGE, "WebP"),
    (40, b" EMF", IMAGE, "EMF"),
    (4, b"ftyphei", IMAGE, "HEIC"),
    (4, b"ftypmif1", IMAGE, "HEIF"),
    (4, b"ftypavif", IMAGE, "AVIF"),
    (0, b"\0\0\0\x0cjP  ", IMAGE, "JPEG 2000"),
    (4, b"ftypM4A", SOUND, "M4A"),
    (0, b"ID3", SOUND, "MP3"),
    (0, b"\xff\xfb", SOUND, "MP3"),
    (0, b"\xff\xf3", SOUND, "MP3"),
    (0, b"fLaC", SOUND, "FLAC"),
    (0, b"OggS", SOUND, "Ogg"),
    (8, b"WAVE", SOUND, "WAV"),
    (0, b"MThd", SOUND, "MIDI"),
    (8, b"AVI ", VIDEO, "AVI"),
    (4, b"ftyp", VIDEO, "MP4"),
    (0, b"\x1a\x45\xdf\xa3", VIDEO, "Matroska"),
    (0, b"FLV\1", VIDEO, "FLV"),
    (0, b"\0\0\1\xba", VIDEO, "MPEG"),
    (0, b"\0\0\1\xb3", VIDEO, "MPEG"),
    (0, b"7z\xbc\xaf\x27\x1c", ARCHIVE, "7z"),
    (0, b"Rar!\x1a\x07", ARCHIVE, "RAR"),
    (0, b"\xfd7zXZ\0", ARCHIVE, "xz"),
    (0, b"BZh", ARCHIVE, "bzip2"),
    (0, b"\x28\xb5\x2f\xfd", ARCHIVE, "Zstandard"),
    (0, b"MSCF", ARCHIVE, "cabinet"),
    (0, b"!<arch>\n", ARCHIVE, "ar or deb"),
    (0, b"\xed\xab\xee\xdb", ARCHIVE, "RPM"),
    (0, b"PK\x05\x06", ARCHIVE, "empty zip"),
    (257, b"ustar", ARCHIVE, "tar"),
    (0, b"\x7fELF", PROGRAM, "ELF"),
    (0, b"MZ", PROGRAM, "Windows"),
    (0, b"\xcf\xfa\xed\xfe", PROGRAM, "macOS"),
    (0, b"\xca\xfe\xba\xbe", PROGRAM, "Java class or macOS"),
    (0, b"\0asm", PROGRAM, "WebAssembly"),
    (0, b"SQLite format 3\0", DATA, "SQLite"),
    (0, b"PAR1", DATA, "Parquet"),
    (0, b"\x89HDF", DATA, "HDF5"),
    (0, b"\0\1\0\0\0", DATA, "font"),
    (0, b"OTTO", DATA, "font"),
    (0, b"wOFF", DATA, "font"),
    (0, b"wOF2", DATA, "font"),
)

# Member of an archive -> format of the office document.
ARCHIVE_MEMBERS: Final = (
    ("word/document.xml", DocumentFormat.DOCX),
    ("ppt/presentation.xml", DocumentFormat.PPTX),
    ("xl/workbook.xml", DocumentFormat.XLSX),
)
# Start of the media type of an OpenDocument or EPUB archive -> format.
MIMETYPES: Final = (
    ("application/vnd.oasis.opendocument.text", DocumentFormat.ODT),
    ("application/vnd.oasis.opendocument.spreadsheet", DocumentFormat.ODS),
    ("application/vnd.oasis.opendocument.presentation", DocumentFormat.ODP),
    ("application/epub+zip", DocumentFormat.EPUB),
)
# Stream of an OLE container -> reason of the refusal.
OLE_STREAMS: Final = (
    ("EncryptedPackage", ENCRYPTED),
    ("WordDocument", "it is in the old Word format; save it as .docx and upload that"),
    ("PowerPoint Document", "it is in the old PowerPoint format; save it as .pptx and upload that"),
    ("__properties_version1.0", "it is an Outlook message; save it as .eml or text and upload that"),
)
SHEET_STREAMS: Final = ("Workbook", "Book")

DECLARATION: Final = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?", re.I)
SPACE: Final = re.compile(r"\s*")
DOCTYPE: Final = re.compile(r"<!doctype[^>]*>\s*", re.I)
HTML: Final = re.compile(r"<(?:!doctype\s+html|html|head|body)\b", re.I)
SVG: Final = re.compile(r"<svg\b", re.I)
TAG: Final = re.compile(r"</?(?:p|div|a|b|br|h[1-6]|table|ul|ol|span|meta|title|pre)\b[^<>]*>", re.I)
# A roff page starts with a request or a comment; its head has a request of man(7) or mdoc(7).
ROFF: Final = re.compile(r"\s*[.']")
ROFF_TABLES: Final = re.compile(r"\s*'\\\" [a-z]*t")
MANUAL: Final = re.compile(r"^\.[ \t]*(?:TH|Dd|Dt)[ \t]", re.M)
MAIL_LINE: Final = re.compile(r"(?:>?From .*|[!-9;-~]+:.*|[ \t].*)", re.A)
MAIL_FIELD: Final = re.compile(
    r"^(from|to|subject|date|received|message-id|mime-version|return-path|delivered-to):", re.I | re.M
)
MAIL_FIELDS_NEEDED: Final = 3

SUFFIXES: Final = {
    ".md": DocumentFormat.MARKDOWN,
    ".markdown": DocumentFormat.MARKDOWN,
    ".mkd": DocumentFormat.MARKDOWN,
    ".htm": DocumentFormat.HTML,
    ".html": DocumentFormat.HTML,
    ".xhtml": DocumentFormat.HTML,
    ".eml": DocumentFormat.MAIL,
    ".mht": DocumentFormat.MAIL,
    ".mhtml": DocumentFormat.MAIL,
    ".json": DocumentFormat.JSON,
    ".ipynb": DocumentFormat.JSON,
}
TYPES: Final = {
    "text/markdown": DocumentFormat.MARKDOWN,
    "text/x-markdown": DocumentFormat.MARKDOWN,
    "text/html": DocumentFormat.HTML,
    "application/xhtml+xml": DocumentFormat.HTML,
    "message/rfc822": DocumentFormat.MAIL,
    "application/json": DocumentFormat.JSON,
}


def detect_format(source: DocumentSource) -> DocumentFormat:
    """Return the format of a file; raise DocumentError for a format without a reader."""
    if source.data is not None:
        return _detect_by_head(source, source.data[:HEAD_BYTES])
    with source.path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        if not head:
            raise DocumentError("it is empty")
        if head.startswith(OLE):
            return _detect_by_streams(file)
    if head.startswith(ZIP):
        return _detect_by_members(source)
    return _detect_by_head(source, head)


def _detect_by_head(source: DocumentSource, head: bytes) -> DocumentFormat:
    # Some writers put other bytes before the PDF, and files of other formats may contain one.
    if head.startswith(b"%PDF-"):
        return DocumentFormat.PDF
    _refuse_known(head)
    if b"%PDF-" in head[:1024]:
        return DocumentFormat.PDF
    if head.startswith(GZIP):
        return DocumentFormat.GZIP
    if head.lstrip()[:5] == b"{\\rtf":
        return DocumentFormat.RTF
    return _kind_of_text(source, head)


def _refuse_known(head: bytes) -> None:
    for offset, magic, sentence, word in REFUSED_SIGNATURES:
        if head[offset : offset + len(magic)] != magic:
            continue
        if not magic.isascii() or b"\0" in head or not _is_ascii_text(magic):
            raise DocumentError(sentence.format(word))


def _is_ascii_text(magic: bytes) -> bool:
    return magic.isascii() and magic.decode("ascii").replace("\n", "").isprintable()


def _kind_of_text(source: DocumentSource, head: bytes) -> DocumentFormat:
    """Return the kind of a text; binary data is refused later, when it is decoded."""
    # NUL bytes between letters come from UTF-16.
    text = head.replace(b"\0", b"").decode("latin-1").lstrip("\xef\xbb\xbf\xff\xfe")
    suggested = SUFFIXES.get(PurePath(source.name).suffix.lower())
    if suggested is None:
        suggested = TYPES.get(
            (source.content_type or "").partition(";")[0].strip().lower(), DocumentFormat.TEXT
        )
    start = _past_comments(text, DECLARATION.match(text))
    if HTML.match(text, start):
        return DocumentFormat.HTML
    while doctype := DOCTYPE.match(text, start):
        start = _past_comments(text, doctype)
    if SVG.match(text, start):
        raise DocumentError(IMAGE.format("SVG"))
    if _is_mail(text):
        return DocumentFormat.MAIL
    if ROFF.match(text) and (ROFF_TABLES.match(text) or MANUAL.search(text)):
        return DocumentFormat.MANUAL
    if text.lstrip()[:1] in {"{", "["} and suggested is not DocumentFormat.MARKDOWN:
        return DocumentFormat.JSON
    if suggested is DocumentFormat.HTML and not TAG.search(text):
        return DocumentFormat.TEXT
    return (
        DocumentFormat.TEXT if suggested is DocumentFormat.MAIL and not MAIL_FIELD.search(text) else suggested
    )


def _past_comments(text: str, before: re.Match[str] | None) -> int:
    """Return the offset of the first markup after comments, in linear time."""
    at = before.end() if before is not None else 0
    while text.startswith("<!--", at):
        end = text.find("-->", at + len("<!--"))
        if end < 0:
            break
        space = SPACE.match(text, end + len("-->"))
        at = space.end() if space is not None else end
    return at


def _is_mail(text: str) -> bool:
    block = re.split(r"\r?\n\r?\n", text.lstrip(), maxsplit=1)[0]
    if not all(MAIL_LINE.fullmatch(line) for line in block.splitlines()[:-1]):
        return False
    return len({name.lower() for name in MAIL_FIELD.findall(block)}) >= MAIL_FIELDS_NEEDED


def _detect_by_members(source: DocumentSource) -> DocumentFormat:
    with open_archive(source.path, source.limits) as archive:
        names = set(archive.namelist())
        if "mimetype" in names:
            with archive.open("mimetype") as member:
                mimetype = member.read(200).decode("latin-1").strip()
            for beginning, format_ in MIMETYPES:
                if mimetype.startswith(beginning):
                    return format_
    for name, format_ in ARCHIVE_MEMBERS:
        if name in names:
            return format_
    if "xl/workbook.bin" in names:
        raise DocumentError("it is a binary workbook; save it as .xlsx and upload that")
    raise DocumentError(ARCHIVE.format("zip"))


def _detect_by_streams(file: BinaryIO) -> DocumentFormat:
    names = _stream_names(file)
    for name, sentence in OLE_STREAMS:
        if name in names:
            raise DocumentError(sentence)
    if names.intersection(SHEET_STREAMS):
        return DocumentFormat.XLS
    raise DocumentError("it is an OLE container of an unknown kind, not a document")


def _stream_names(file: BinaryIO) -> set[str]:
    """Return the names in the directory of an OLE container ([MS-CFB] 2.2, 2.3, 2.6).

    It follows only the part of the allocation table that the header lists, which covers the first 7 MB.
    """
    file.seek(0)
    header = file.read(512)
    if len(header) < 512:
        raise DocumentError("it is damaged: its end is missing")
    size = 1 << min(struct.unpack_from("<H", header, 30)[0], 12)
    sector = struct.unpack_from("<I", header, 48)[0]
    tables = struct.unpack_from("<109I", header, 76)
    names: set[str] = set()
    for _ in range(64):
        file.seek((sector + 1) * size)
        block = file.read(size)
        names |= {_entry_name(block[start : start + 128]) for start in range(0, len(block), 128)}
        table, place = divmod(sector, size // 4)
        if table >= len(tables) or tables[table] >= 0xFFFFFFFA or len(block) < size:
            break
        file.seek((tables[table] + 1) * size + 4 * place)
        following = file.read(4)
        sector = struct.unpack("<I", following)[0] if len(following) == 4 else 0xFFFFFFFE
        if sector >= 0xFFFFFFFA:
            break
    return names


def _entry_name(entry: bytes) -> str:
    if len(entry) < 66:
        return ""
    length = struct.unpack_from("<H", entry, 64)[0]
    return entry[: max(min(length, 64) - 2, 0)].decode("utf-16-le", "replace")

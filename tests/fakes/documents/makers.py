"""Makers of documents, good and hostile: each returns the bytes of a file."""

import email.message
import gzip
import io
import json
import struct
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import docx
import openpyxl
import pptx
import pymupdf
from docx.enum.text import WD_ALIGN_PARAGRAPH

SENTENCE = "The blue heron stands in the shallow water."


# Good documents -------------------------------------------------------------------------------------------


def pdf(pages: Sequence[str] = (SENTENCE,), *, title: str = "", password: str = "") -> bytes:
    document = pymupdf.open()
    for text in pages:
        page = document.new_page()
        if text:
            page.insert_text((72, 72), text.splitlines())
    if title:
        document.set_metadata({"title": title})
    if not password:
        return bytes(document.tobytes())
    return bytes(
        document.tobytes(encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw=password, owner_pw=password)
    )


def written_pdf(text: str) -> bytes:
    """Return a PDF whose characters are those of a text: ligatures stay."""
    document = pymupdf.open()
    page = document.new_page()
    writer = pymupdf.TextWriter(page.rect)
    writer.append((72, 72), text, font=pymupdf.Font("helv"))
    writer.write_text(page)
    return bytes(document.tobytes())


def scanned_pdf(pages: int = 2) -> bytes:
    return partly_scanned_pdf(pages)


def partly_scanned_pdf(pages: int, text: str = "") -> bytes:
    """Return a PDF of pictures of pages, with a page of text behind them if there is one."""
    document = pymupdf.open()
    image = pymupdf.Pixmap(pymupdf.csRGB, pymupdf.IRect(0, 0, 60, 80), False)
    image.clear_with(200)
    for _ in range(pages):
        document.new_page().insert_image(pymupdf.Rect(0, 0, 300, 400), pixmap=image)
    if text:
        document.new_page().insert_text((72, 72), text)
    return bytes(document.tobytes())


def pdf_without_pages() -> bytes:
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [] /Count 0 >>"]
    return raw_pdf(objects)


def raw_pdf(objects: Sequence[bytes]) -> bytes:
    """Return a PDF of objects, the first of which is the catalogue."""
    out = bytearray(b"%PDF-1.7\n")
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n" % number + content + b"\nendobj\n"
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(out)


def pdf_of_forms(levels: int = 12) -> bytes:
    """Return a PDF of a few lines whose page draws ten forms, each of which draws ten others, and so on."""
    draw = b"/F Do " * 10

    def form(number: int) -> bytes:
        content = draw if number < levels else b"0 0 1 1 re n "
        resources = b"/Resources << /XObject << /F %d 0 R >> >>" % (number + 4) if number < levels else b""
        head = b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] %s /Length %d >>" % (
            resources,
            len(content),
        )
        return head + b"\nstream\n" + content + b"\nendstream"

    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Contents %d 0 R %s >>"
    last = levels + 4
    return raw_pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            page % (last, b"/Resources << /XObject << /F 4 0 R >> >>"),
            *(form(number) for number in range(1, levels + 1)),
            b"<< /Length %d >>\nstream\n" % len(draw) + draw + b"\nendstream",
        ]
    )


def epub(chapters: Mapping[str, str] | None = None, *, title: str = "Birds") -> bytes:
    chapters = chapters or {"Herons": SENTENCE}
    names = [f"c{number}.xhtml" for number in range(len(chapters))]
    items = "".join(f'<item id="i{n}" href="{n}" media-type="application/xhtml+xml"/>' for n in names)
    spine = "".join(f'<itemref idref="i{n}"/>' for n in names)
    points = "".join(
        f'<navPoint id="p{n}" playOrder="{i}"><navLabel><text>{label}</text></navLabel>'
        f'<content src="{n}"/></navPoint>'
        for i, (n, label) in enumerate(zip(names, chapters, strict=True), 1)
    )
    files = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container version="1.0" '
        'xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="o.opf" media-type="application/oebps-package+xml"/></rootfiles></container>',
        "o.opf": '<package xmlns="http://www.idpf.org/2007/opf" version="2.0" unique-identifier="b">'
        f'<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title>'
        '<dc:identifier id="b">1</dc:identifier></metadata><manifest>'
        f'<item id="ncx" href="t.ncx" media-type="application/x-dtbncx+xml"/>{items}</manifest>'
        f'<spine toc="ncx">{spine}</spine></package>',
        "t.ncx": '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/" version="2005-1"><navMap>'
        f"{points}</navMap></ncx>",
    }
    for name, (label, text) in zip(names, chapters.items(), strict=True):
        files[name] = (
            '<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><head>'
            f"<title>{label}</title></head><body><h1>{label}</h1><p>{text}</p></body></html>"
        )
    return archive(files)


def word() -> bytes:
    document = docx.Document()
    document.core_properties.title = "Birds of the lake"
    document.add_heading("Herons", level=1)
    document.add_paragraph(SENTENCE)
    table = document.add_table(rows=2, cols=2)
    for place, text in enumerate(("Bird", "Count", "Heron", "7")):
        table.cell(place // 2, place % 2).text = text
    document.add_heading("Food", level=2)
    fish = document.add_paragraph("Fish and frogs.")
    fish.alignment = WD_ALIGN_PARAGRAPH.CENTER
    fish.paragraph_format.tab_stops.add_tab_stop(914_400)
    document.add_paragraph("Perch", style="List Bullet")
    return saved(document)


def slides() -> bytes:
    show = pptx.Presentation()
    show.core_properties.title = "Lake"
    first = show.slides.add_slide(show.slide_layouts[1])
    first.shapes.title.text = "Herons"
    first.placeholders[1].text = SENTENCE
    first.notes_slide.notes_text_frame.text = "Speak slowly."
    second = show.slides.add_slide(show.slide_layouts[5])
    second.shapes.title.text = "Counts"
    table = second.shapes.add_table(1, 2, 0, 0, 900_000, 900_000).table
    table.cell(0, 0).text, table.cell(0, 1).text = "Heron", "7"
    group = second.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, 9000, 9000).text_frame.text = "Inside a group."
    return saved(show)


def workbook(sheets: Mapping[str, Sequence[Sequence[Any]]] | None = None) -> bytes:
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for name, rows in (sheets or {"Counts": [["Bird", "Count"], ["Heron", 7]]}).items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    return saved(book)


def sparse_workbook() -> bytes:
    """Return a workbook with two cells, one of them the last that there can be."""
    book = openpyxl.Workbook()
    book.worksheets[0]["A1"] = "first"
    book.worksheets[0]["XFD1048576"] = "last"
    return saved(book)


def old_workbook(name: str = "Counts", cells: Sequence[str | float] = ("Heron", 7.0)) -> bytes:
    """Return an .xls file with one row: BIFF8 records ([MS-XLS]) in an OLE container ([MS-CFB])."""

    def record(kind: int, body: bytes) -> bytes:
        return struct.pack("<HH", kind, len(body)) + body

    def bof(kind: int) -> bytes:
        return record(0x0809, struct.pack("<HHHHII", 0x0600, kind, 0x0DBB, 1996, 0, 6))

    sheet = bof(0x10)
    for column, cell in enumerate(cells):
        place = struct.pack("<HHH", 0, column, 0)
        if isinstance(cell, str):
            sheet += record(0x0204, place + struct.pack("<HB", len(cell), 0) + cell.encode("latin-1"))
        else:
            sheet += record(0x0203, place + struct.pack("<d", cell))
    sheet += record(0x0A, b"")
    label = name.encode("latin-1")
    start = len(bof(5)) + 4 + 8 + len(label) + 4
    bound = record(0x85, struct.pack("<IHBB", start, 0, len(label), 0) + label)
    return ole({"Workbook": bof(5) + bound + record(0x0A, b"") + sheet})


def ole(streams: Mapping[str, bytes]) -> bytes:
    """Return an OLE container; streams are filled up so that none is in the small sectors."""
    free, end, table_mark = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD

    def entry(name: str, kind: int, child: int, right: int, start: int, size: int) -> bytes:
        raw = name.encode("utf-16-le") + b"\0\0"
        head = raw.ljust(64, b"\0") + struct.pack("<HBBIII", len(raw), kind, 1, free, right, child)
        return head + bytes(36) + struct.pack("<IQ", start, size)

    chains: list[int] = [table_mark, end]
    data = b""
    entries = [entry("Root Entry", 5, 1 if streams else free, free, end, 0)]
    for number, (name, content) in enumerate(streams.items(), 1):
        content = content.ljust(4096, b"\0")
        content += bytes(-len(content) % 512)
        first = len(chains)
        count = len(content) // 512
        chains += [*range(first + 1, first + count), end]
        right = number + 1 if number < len(streams) else free
        entries.append(entry(name, 2, free, right, first, len(content)))
        data += content
    assert len(chains) <= 128
    assert len(entries) <= 4
    table = struct.pack("<128I", *chains, *[free] * (128 - len(chains)))
    directory = b"".join(entries).ljust(512, b"\0")
    header = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6)
    header += bytes(6) + struct.pack("<IIIIIIIII", 0, 1, 1, 0, 4096, end, 0, end, 0)
    header += struct.pack("<109I", 0, *[free] * 108)
    return header + table + directory + data


NAMESPACES = " ".join(
    f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{long}:1.0"'
    for short, long in {
        "office": "office",
        "text": "text",
        "table": "table",
        "draw": "drawing",
        "presentation": "presentation",
    }.items()
)


def opendocument(kind: str, body: str, *, prolog: str = "", manifest: str = "<manifest/>") -> bytes:
    """Return an OpenDocument file; `kind` is text, spreadsheet or presentation."""
    return archive(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": f'<?xml version="1.0"?>{prolog}<office:document-content {NAMESPACES}><office:body>'
            f"<office:{kind}>{body}</office:{kind}></office:body></office:document-content>",
            "meta.xml": '<m xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Lake</dc:title></m>',
            "META-INF/manifest.xml": manifest,
        }
    )


def opendocument_sheet(sheets: Mapping[str, Sequence[Sequence[str]]]) -> bytes:
    """Return an OpenDocument workbook."""
    body = []
    for name, rows in sheets.items():
        cells = (
            "".join(f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in row)
            for row in rows
        )
        lines = "".join(f"<table:table-row>{line}</table:table-row>" for line in cells)
        body.append(f'<table:table table:name="{name}">{lines}</table:table>')
    return opendocument("spreadsheet", "".join(body))


def page(body: str = f"<h1>Herons</h1><p>{SENTENCE}</p>", *, head: str = "<title>Lake</title>") -> bytes:
    return f"<!DOCTYPE html><html><head>{head}</head><body>{body}</body></html>".encode()


def notebook() -> bytes:
    output = {"output_type": "stream", "text": ["seven\n"]}
    cells = [
        {"cell_type": "markdown", "source": ["# Herons\n", SENTENCE]},
        {"cell_type": "code", "source": "# count\nprint(count)", "outputs": [output]},
    ]
    return json.dumps({"nbformat": 4, "metadata": {}, "cells": cells}).encode()


def rich_text() -> bytes:
    return (
        rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}\f0 " + SENTENCE.encode() + rb"\par caf\'e9 \u8364?}"
    )


def message(*, html_only: bool = False) -> bytes:
    mail = email.message.EmailMessage()
    mail["Subject"] = "Vögel am See"
    mail["From"] = "Ann <ann@example.org>"
    mail["To"] = "Bo <bo@example.org>"
    mail["Date"] = "Mon, 02 Mar 2026 10:00:00 +0000"
    if html_only:
        mail.set_content(f"<html><body><p>{SENTENCE}</p><script>x()</script></body></html>", subtype="html")
    else:
        mail.set_content(SENTENCE)
        mail.add_alternative(f"<p>{SENTENCE}</p>", subtype="html")
    mail.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="counts.pdf")
    return bytes(mail)


# Hostile documents and their parts ------------------------------------------------------------------------


def archive(files: Mapping[str, bytes | str], *, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return out.getvalue()


def replaced(document: bytes, name: str, content: bytes | str) -> bytes:
    """Return an archive with another content for one entry."""
    with zipfile.ZipFile(io.BytesIO(document)) as packed:
        files: dict[str, bytes | str] = {entry: packed.read(entry) for entry in packed.namelist()}
    return archive({**files, name: content})


def expanding(name: str, size: int) -> bytes:
    """Return a Word document with an entry of spaces."""
    out = io.BytesIO(word())
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as packed, packed.open(name, "w") as entry:
        for _ in range(size // 1_000_000):
            entry.write(b" " * 1_000_000)
    return out.getvalue()


def entities() -> str:
    """Return the prolog of an XML file whose entities expand to a billion texts."""
    lines = ['<!ENTITY a0 "lol">']
    lines += [f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10)]
    return f"<!DOCTYPE x [{''.join(lines)}]>"


def zipped(content: bytes) -> bytes:
    return gzip.compress(content)


def saved(document: Any) -> bytes:
    """Return a document of a library as a file."""
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def entry(document: bytes, name: str) -> bytes:
    """Return one entry of an archive."""
    with zipfile.ZipFile(io.BytesIO(document)) as packed:
        return packed.read(name)

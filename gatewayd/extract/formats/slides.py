"""Text of PowerPoint presentations (ECMA-376 part 1, 19: PresentationML; part 2: the package)."""

import posixpath
import zipfile
from collections.abc import Iterator
from typing import Any, Final

from lxml import etree

from gatewayd.extract.formats.archives import open_archive, refuse_entities
from gatewayd.extract.records import DocumentSource, ExtractedDocument
from gatewayd.extract.text_builder import DocumentError, TextBuilder, markdown_heading, table_row

# Strict files use the same names in other namespaces: `{*}` matches any namespace.
RELATION: Final = (
    "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id",
    "{http://purl.oclc.org/ooxml/officeDocument/relationships}id",
)
TITLE: Final = "{http://purl.org/dc/elements/1.1/}title"
PLACEHOLDER: Final = "{*}nvSpPr/{*}nvPr/{*}ph"
TABLE: Final = "{*}graphic/{*}graphicData/{*}tbl"
PACKAGE: Final = ""


def read(source: DocumentSource) -> ExtractedDocument:
    """Return the text of a presentation as Markdown: a part per slide, with its tables and notes."""
    with open_archive(source.path, source.limits) as archive:
        refuse_entities(archive)
        package = _Package(archive)
        builder = TextBuilder(source.limits.text)
        try:
            main = package.related(PACKAGE, "/officeDocument")
            if main is None:
                raise DocumentError("it is damaged: it has no relationship to a presentation part")
            slides = package.slides(main)
            for number, slide in enumerate(slides, 1):
                _write_slide(package.tree(slide), builder)
                notes = package.related(slide, "/notesSlide")
                _write_notes(package.tree(notes) if notes else None, builder)
                builder.end_part(page=number, is_markdown=True)
            about = package.related(PACKAGE, "/core-properties")
            title = package.tree(about).findtext(TITLE) if about else None
        except etree.LxmlError as error:
            raise DocumentError(f"it is damaged: {error}") from error
    return builder.finish(pages=len(slides), title=title)


class _Package:
    """The parts of an OPC package, by their names in the archive, and their relationships."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names = set(archive.namelist())

    def tree(self, part: str) -> Any:
        """Return the XML of a part."""
        return etree.fromstring(
            self._archive.read(part), etree.XMLParser(resolve_entities=False, no_network=True)
        )

    def related(self, part: str, kind: str) -> str | None:
        """Return the first part to which a part (or the package) has a relationship of this kind."""
        found = (target for type_, target in self._relations(part).values() if type_.endswith(kind))
        return next(found, None)

    def slides(self, main: str) -> list[str]:
        """Return the names of the slides in display order."""
        relations = self._relations(main)
        ids = [
            slide.get(name) for slide in self.tree(main).iterfind("{*}sldIdLst/{*}sldId") for name in RELATION
        ]
        return [relations[id_][1] for id_ in ids if id_ is not None]

    def _relations(self, part: str) -> dict[str, tuple[str, str]]:
        """Return id -> (kind, target) of the relationships of a part inside the file."""
        folder, name = posixpath.split(part)
        listed = posixpath.join(folder, "_rels", f"{name}.rels")
        if listed not in self._names:
            return {}
        return {
            relation.get("Id"): (
                relation.get("Type"),
                posixpath.normpath(posixpath.join("/", folder, relation.get("Target"))).lstrip("/"),
            )
            for relation in self.tree(listed).iterfind("{*}Relationship")
            if relation.get("TargetMode") != "External"
        }


def _write_slide(slide: Any, builder: TextBuilder) -> None:
    shapes = slide.find("{*}cSld/{*}spTree")
    # The title placeholder has no index.
    titles = (shape for shape in shapes.iterfind("{*}sp") if _placeholder(shape).get("idx", "0") == "0")
    title = next(titles, None)
    if title is not None:
        builder.write(markdown_heading(1, _text(title)))
    for shape in _shapes(shapes):
        table = shape.find(TABLE)
        if table is not None:
            for line in table.iterfind("{*}tr"):
                builder.write(table_row([_text(cell) for cell in line.iterfind("{*}tc")]))
            builder.write("\n")
        elif shape is not title and (text := _text(shape).strip()):
            builder.write(f"{text}\n\n")


def _write_notes(notes: Any, builder: TextBuilder) -> None:
    for shape in notes.iterfind("{*}cSld/{*}spTree/{*}sp") if notes is not None else ():
        if _placeholder(shape).get("type") == "body":
            if text := _text(shape).strip():
                builder.write(f"Notes: {text}\n")
            return


def _placeholder(shape: Any) -> Any:
    """Return the placeholder element of a shape, or attributes that match no placeholder."""
    found = shape.find(PLACEHOLDER)
    return found if found is not None else {"idx": "-1"}


def _shapes(shapes: Any) -> Iterator[Any]:
    """Yield the shapes of a slide, with those of its groups, in order."""
    for shape in shapes.iterchildren("{*}sp", "{*}graphicFrame", "{*}grpSp"):
        if etree.QName(shape).localname == "grpSp":
            yield from _shapes(shape)
        else:
            yield shape


def _text(shape: Any) -> str:
    """Return the text of a shape or cell, a line per paragraph; "" without text."""
    return "\n".join(
        "".join(
            "\n" if etree.QName(run).localname == "br" else run.findtext("{*}t") or ""
            for run in paragraph.iterchildren("{*}r", "{*}br", "{*}fld")
        )
        for paragraph in shape.iterfind("{*}txBody/{*}p")
    )

"""Text of presentations."""

from collections.abc import Iterator
from typing import Any

import pptx.exc
import pptx.package
from lxml import etree

from gatewayd.extract.archives import open_archive, refuse_entities
from gatewayd.extract.draft import DocumentError, Draft, heading, row
from gatewayd.extract.records import Document, Source


def read(source: Source) -> Document:
    """Return the text of a presentation as Markdown: a part is a slide with its tables and notes."""
    with open_archive(source.path, source.limits) as archive:
        refuse_entities(archive)
    try:
        presentation = pptx.package.Package.open(str(source.path)).main_document_part.presentation
        slides = list(presentation.slides)
    except (pptx.exc.PythonPptxError, etree.LxmlError) as error:
        raise DocumentError(f"it is damaged: {error}") from error
    draft = Draft(source.limits.text)
    for number, slide in enumerate(slides, 1):
        _write_slide(slide, draft)
        draft.end_part(page=number, is_markdown=True)
    return draft.finish(pages=len(slides), title=presentation.core_properties.title)


def _write_slide(slide: Any, draft: Draft) -> None:
    title = slide.shapes.title
    if title is not None:
        draft.write(heading(1, title.text_frame.text))
    for shape in _shapes(slide.shapes):
        if title is not None and shape.shape_id == title.shape_id:
            continue
        if getattr(shape, "has_table", False):
            for line in shape.table.rows:
                draft.write(row([cell.text_frame.text for cell in line.cells]))
            draft.write("\n")
        elif shape.has_text_frame and shape.text_frame.text.strip():
            draft.write(f"{shape.text_frame.text.strip()}\n\n")
    notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    if notes is not None and notes.text.strip():
        draft.write(f"Notes: {notes.text.strip()}\n")


def _shapes(shapes: Any) -> Iterator[Any]:
    """Yield the shapes of a slide and of the groups in it, in order."""
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes)
        else:
            yield shape

"""Text of e-mail messages (RFC 5322) and saved web pages (MHTML)."""

from collections.abc import Iterator
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message
from typing import Final

from gatewayd.extract.encodings import decode
from gatewayd.extract.formats.markup import to_markdown
from gatewayd.extract.input_bytes import read_bytes
from gatewayd.extract.records import DocumentSource, ExtractedDocument
from gatewayd.extract.text_builder import TextBuilder

SHOWN_FIELDS: Final = ("Subject", "From", "To", "Cc", "Date")
# The standard library takes quadratic time to decode a header.
MAX_HEADER_CHARACTERS: Final = 20_000


def read(source: DocumentSource) -> ExtractedDocument:
    """Return the main headers, the plain text or else the HTML, and the names of the attachments."""
    message = message_from_bytes(read_bytes(source).lstrip())
    builder = TextBuilder(source.limits.text)
    for name in SHOWN_FIELDS:
        if value := _header(message, name):
            builder.write(f"{name}: {value}\n")
    texts, pages, attached = [], [], []
    for part in _leaves(message):
        if name := _file_name(part):
            attached.append(name)
        elif part.get_content_type() == "text/plain":
            texts.append(_content(part))
        elif part.get_content_type() == "text/html":
            pages.append(_content(part))
    is_plain = any(text.strip() for text in texts)
    for text in texts if is_plain else (to_markdown(page)[0] for page in pages):
        builder.write(f"\n{text.strip()}\n")
    if attached:
        builder.write(f"\nAttachments: {', '.join(attached)}\n")
    builder.end_part()
    return builder.finish(title=_header(message, "Subject"))


def _leaves(message: Message) -> Iterator[Message]:
    """Yield the parts of a message with content; an embedded message is one part."""
    waiting = [message]
    while waiting:
        part = waiting.pop()
        payload = part.get_payload()
        if part.get_content_maintype() == "multipart" and isinstance(payload, list):
            waiting.extend(piece for piece in reversed(payload) if isinstance(piece, Message))
        else:
            yield part


def _header(message: Message, name: str) -> str:
    value = message.get(name)
    return "" if value is None else _decoded(str(value))


def _decoded(value: str) -> str:
    """Return the decoded text of a header, of a very long one the start."""
    value = value[:MAX_HEADER_CHARACTERS]
    try:
        return " ".join(str(make_header(decode_header(value))).split())
    except (HeaderParseError, LookupError, ValueError):
        return " ".join(value.split())


def _file_name(part: Message) -> str:
    """Return the name of an attachment, "" for a part of the message text."""
    if part.get_content_maintype() == "message":
        payload = part.get_payload()
        inner = payload[0] if isinstance(payload, list) and payload else None
        return (_header(inner, "Subject") if isinstance(inner, Message) else "") or "message"
    name = part.get_filename()
    if name or part.get_content_disposition() == "attachment":
        return _decoded(name) if name else "unnamed"
    return ""


def _content(part: Message) -> str:
    data = part.get_payload(decode=True)
    return decode(data, part.get_content_charset()) if isinstance(data, bytes) else ""

from email.message import EmailMessage

from tests.fakes.documents import makers as documents
from tests.fakes.documents.readers import reading, refusal

HEAD = b"From: a@example.org\nTo: b@example.org\nSubject: s\n"


def test_the_plain_text_is_preferred_and_attachments_are_named() -> None:
    document = reading(documents.message())
    assert document.text == (
        "Subject: Vögel am See\nFrom: Ann <ann@example.org>\nTo: Bo <bo@example.org>\n"
        f"Date: Mon, 02 Mar 2026 10:00:00 +0000\n\n{documents.SENTENCE}\n\nAttachments: counts.pdf\n\n"
    )
    assert document.title == "Vögel am See"


def test_html_is_read_when_there_is_nothing_else() -> None:
    text = reading(documents.message(html_only=True)).text
    assert documents.SENTENCE in text
    assert "x()" not in text


def test_a_forwarded_message_is_an_attachment() -> None:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "a", "b", "outer"
    mail.set_content("see below")
    inner = EmailMessage()
    inner["Subject"] = "inner"
    inner.set_content("inner text")
    mail.add_attachment(inner)
    text = reading(bytes(mail)).text
    assert "Attachments: inner" in text
    assert "inner text" not in text


def test_headers_and_encodings_that_make_no_sense_are_kept_as_they_are() -> None:
    data = (
        HEAD + b"Cc: =?nonesuch?q?abc?=\nContent-Type: text/plain; charset=nonesuch\n\nhello \xe5\xe4\xf6 all"
    )
    text = reading(data).text
    assert "Cc: =?nonesuch?q?abc?=" in text
    assert "hello åäö all" in text


def test_parts_nested_without_end_are_refused_in_time() -> None:
    nested = b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(3000))
    assert "it is damaged" in refusal(HEAD + nested)


def test_a_header_without_end_is_read_in_part_and_in_time() -> None:
    words = b"=?utf-8?q?a?= " * 300_000
    data = HEAD + b"Cc: " + words + b'\nContent-Disposition: attachment; filename="' + words + b'"\n\nhello\n'
    document = reading(data)
    assert "Cc: aaaa" in document.text
    assert "Attachments: aaaa" in document.text
    assert len(document.text) < 5000

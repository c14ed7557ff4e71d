import codecs
import random
import struct

import pytest

from gatewayd.extract.encodings import charset_of, decode
from gatewayd.extract.text_builder import DocumentError

TEXTS = {
    "sv": "Så här gör du när servern inte svarar: öppna loggen och leta efter åtkomstfel. ",
    "de": "Bitte überprüfen Sie die Größe der Datei und löschen Sie überflüssige Einträge.",
    "fr": "Le fichier a été créé à l'été dernier; vérifiez les paramètres réseau et où sont les données.",
    "pl": "Proszę sprawdzić, czy plik został zapisany we właściwym miejscu. Źródło błędu jest nieznane.",
    "cs": "Příliš žluťoučký kůň úpěl ďábelské ódy. Zkontrolujte prosím nastavení serveru a spusťte službu.",
    "ru": "Пожалуйста, проверьте настройки сервера и перезапустите службу. Обратитесь к администратору.",
    "el": "Παρακαλώ ελέγξτε τις ρυθμίσεις του διακομιστή και επανεκκινήστε την υπηρεσία.",
    "ja": "サーバーの設定を確認してから、サービスを再起動してください。問題が続く場合は。",
    "zh": "请检查服务器设置。然后重新启动服务。如果问题仍然存在。请联系管理员。",
    "th": "กรุณาตรวจสอบการตั้งค่าเซิร์ฟเวอร์ หากปัญหายังคงอยู่ให้ติดต่อผู้ดูแลระบบ ราคาอาหาร เวลา นาฬิกา",
    "ko": "서버 설정을 확인한 다음 서비스를 다시 시작하십시오. 문제가 계속되면 문의.",
}
WIDE_TEXTS = {
    **TEXTS,
    "hi": "कर्मचारियों को हर साल अट्ठाईस दिन की छुट्टी मिलती है। आवेदन पोर्टल में करें।",
    "pa": "ਕਰਮਚਾਰੀਆਂ ਨੂੰ ਹਰ ਸਾਲ ਛੁੱਟੀ ਮਿਲਦੀ ਹੈ। ਅਰਜ਼ੀ ਪੋਰਟਲ ਵਿੱਚ ਦਿਓ।",
    "ml": "ജീവനക്കാർക്ക് എല്ലാ വർഷവും അവധി ലഭിക്കും. അപേക്ഷ പോർട്ടലിൽ നൽകുക.",
    "si": "සේවකයින්ට සෑම වසරකම නිවාඩු ලැබේ. අයදුම්පත ද්වාරයේ යොමු කරන්න.",
    "bn": "কর্মচারীরা প্রতি বছর ছুটি পান। পোর্টালে আবেদন করুন।",
    "ta": "ஊழியர்களுக்கு ஒவ்வொரு ஆண்டும் விடுப்பு கிடைக்கும். விண்ணப்பிக்கவும்.",
    "ka": "თანამშრომლები ყოველწლიურად იღებენ შვებულებას.",
    "am": "ሰራተኞች በየዓመቱ ፈቃድ ያገኛሉ። ማመልከቻ ያስገቡ።",
    "ar": "يحصل الموظفون على إجازة سنوية مدتها ٢٨ يومًا.",
    "he": "עובדים מקבלים חופשה בת 28 ימים בכל שנה.",
    "km": "បុគ្គលិកទទួលបានថ្ងៃឈប់សម្រាករៀងរាល់ឆ្នាំ។ សូមដាក់ពាក្យ។",
    "yue": "佢哋每年有廿八日年假。喺系統度申請就得㗎喇。唔使搵人事部。",
    "emoji": "Nice \U0001f600\U0001f600 work \U0001f44d",
}
WIDE_MARKS = {
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}
ENCODINGS = (
    "sv cp1252, de cp1252, fr cp1252, fr iso8859-15, sv mac_roman, de cp437, sv cp850, pl cp1250, "
    "pl iso8859-2, cs cp1250, cs iso8859-2, ru cp1251, ru koi8-r, ru cp866, el cp1253, el iso8859-7, "
    "ja shift_jis, ja euc_jp, ja iso2022_jp, zh gb18030, ko euc_kr, sv utf-8, sv utf-8-sig, "
    "ru utf-16, sv utf-16-le, ru utf-16-be, ja utf-16-le, sv utf-32, sv utf-32-le"
)


@pytest.mark.parametrize("case", ENCODINGS.split(", "))
def test_texts_in_any_encoding_are_read(case: str) -> None:
    language, encoding = case.split()
    text = f"{TEXTS[language]}\n"
    assert decode(text.encode(encoding)) == text
    assert decode((text * 40).encode(encoding)) == text * 40


@pytest.mark.parametrize("declared", ["koi8-r", "'KOI8-R'", "koi8_r"])
def test_a_declared_encoding_is_believed_when_it_fits(declared: str) -> None:
    assert decode("да".encode("koi8-r"), declared) == "да"


@pytest.mark.parametrize(
    "declared", ["nonesuch", "hex", "utf-16", "idna", "unicode_escape", "undefined", "\0", ""]
)
def test_a_declaration_that_makes_no_sense_is_ignored(declared: str) -> None:
    assert decode(b"a\\u00e5 text", declared) == "a\\u00e5 text"
    assert decode("når åene går".encode("cp1252"), declared) == "når åene går"


def test_utf8_is_utf8_whatever_is_declared() -> None:
    assert decode("åäö".encode(), "cp1251") == "åäö"


@pytest.mark.parametrize("language", ["ru", "ja", "el"])
def test_a_broken_byte_does_not_change_the_encoding(language: str) -> None:
    text = TEXTS[language] * 5
    data = text.encode()
    broken = data[:200].decode(errors="ignore").encode() + b"\xd1f" + data[200:]
    read = decode(broken, "utf-8")
    assert read.endswith(TEXTS[language])
    assert 1 <= read.count("\ufffd") <= 3


@pytest.mark.parametrize("data", [b"abc\0def" * 100, bytes(1000), bytes(range(256)) * 9, b"\x01\x02\x03abc"])
def test_binary_data_is_refused(data: bytes) -> None:
    with pytest.raises(DocumentError, match="not text but binary"):
        decode(data)


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<2000H", *range(0x4E00, 0x4E00 + 2000)),
        struct.pack(">3000H", *range(0xAC00, 0xAC00 + 3000)),
        struct.pack("<2000H", *range(25_000, 29_000, 2)),
        ("A header. " * 4000).encode("utf-16-le") + struct.pack("<9000H", *range(0x4E00, 0x4E00 + 9000)),
    ],
)
def test_binary_data_is_not_read_as_utf16(data: bytes) -> None:
    with pytest.raises(DocumentError, match="not text but binary"):
        decode(data)


@pytest.mark.parametrize("size", [64, 4000, 60_000])
@pytest.mark.parametrize("mark", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("kind", ["image", "sound", "numbers"])
def test_binary_data_behind_a_mark_is_no_text(kind: str, mark: str, size: int) -> None:
    chance = random.Random(size)
    data = {
        "image": bytes(min(255, max(0, round(chance.gauss(90, 12)))) for _ in range(size)),
        "sound": struct.pack(f"<{size // 2}h", *(chance.randint(32, 1000) for _ in range(size // 2))),
        "numbers": struct.pack(f"<{size // 2}H", *(chance.randint(0x3400, 0x9FFF) for _ in range(size // 2))),
    }
    with pytest.raises(DocumentError, match="not text but binary"):
        decode(WIDE_MARKS[mark] + data[kind])


@pytest.mark.parametrize("language", WIDE_TEXTS)
@pytest.mark.parametrize("encoding", WIDE_MARKS)
def test_wide_texts_are_read_with_and_without_a_mark(language: str, encoding: str) -> None:
    text = f"{WIDE_TEXTS[language]}\n" * 3
    assert decode(text.encode(encoding)) == text
    assert decode(WIDE_MARKS[encoding] + text.encode(encoding)) == text


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
@pytest.mark.parametrize("rare", ["\u3400", "\ub620", "\ub620\ud7a3"])
def test_a_rare_character_in_another_script_is_no_binary_data(rare: str, encoding: str) -> None:
    text = f"{TEXTS['sv']}\nThe name is written {rare}.\n"
    assert decode(text.encode(encoding)) == text


@pytest.mark.parametrize("declared", [None, "utf-8", "iso-8859-1"])
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
@pytest.mark.parametrize(
    ("data", "text"),
    [
        (
            b"na\xc3\xafve caf\xc3\xa9, \xff r\xc3\xa9sum\xc3\xa9",
            "na\u00efve caf\u00e9, \ufffd r\u00e9sum\u00e9",
        ),
        (
            "\u65e5\u672c\u8a9e\u306e\u6587\u66f8".encode() + b"\xe6\x9b",
            "\u65e5\u672c\u8a9e\u306e\u6587\u66f8\ufffd",
        ),
    ],
)
def test_a_few_broken_bytes_of_utf8_are_replaced(
    mark: bytes, data: bytes, text: str, declared: str | None
) -> None:
    assert decode(mark + data, declared) == text


@pytest.mark.parametrize("declared", [None, "utf-8"])
def test_other_encodings_are_not_taken_for_broken_utf8(declared: str | None) -> None:
    data = TEXTS["th"].encode("cp874") * 9
    assert decode(data, "cp874") == TEXTS["th"] * 9
    assert "\ufffd" not in decode(data, declared)


def test_the_charset_of_a_media_type() -> None:
    assert charset_of('text/plain; Charset="UTF-8"') == "UTF-8"
    assert charset_of("text/plain") is None
    assert charset_of(None) is None

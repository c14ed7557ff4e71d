"""The texts of the page: the same keys and slots in all languages, all used, and none in the modules."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.page.scripts import PAGE, Literal, literals, modules

LANGUAGES = {path.stem: json.loads(path.read_text()) for path in sorted((PAGE / "languages").glob("*.json"))}
PLURALS = {
    "en": {"one", "other"},
    "de": {"one", "other"},
    "ar": {"zero", "one", "two", "few", "many", "other"},
}
AREAS = ("common", "signin", "chat", "render", "sidebar", "documents", "account", "admin", "errors")
SLOT = re.compile(r"\{(\w+)\}")
KEY = re.compile(rf"(?:{'|'.join(AREAS)})(?:\.\w+)+")
CALL = re.compile(r"""\b(?:t|plural)\(\s*"([^"]+)\"""")
SERVER = PAGE.parents[1] / "http" / "web" / "documents.py"
LETTERS = re.compile(r"[^\W\d_]{2,}")
SPOKEN = re.compile(r"""\b(aria-label|title|placeholder|alt|label|help|text|verb)=(?:"([^"]*)"|'([^']*)')""")


def texts(words: Mapping[str, Any], language: str, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each key with its text, or with the forms of a plural."""
    for name, value in words.items():
        if isinstance(value, str) or ("other" in value and set(value) <= PLURALS["ar"]):
            yield f"{prefix}{name}", value
        else:
            yield from texts(value, language, f"{prefix}{name}.")


KEYS = {language: dict(texts(words, language)) for language, words in LANGUAGES.items()}


def slots(value: Any) -> set[str]:
    given = [value] if isinstance(value, str) else value.values()
    return set().union(*(SLOT.findall(text) for text in given))


def test_areas_are_the_known_ones() -> None:
    for words in LANGUAGES.values():
        assert tuple(words) == AREAS


@pytest.mark.parametrize("language", ["de", "ar"])
def test_keys_and_slots_are_those_of_english(language: str) -> None:
    english, other = KEYS["en"], KEYS[language]
    assert set(english) == set(other)
    for key, value in english.items():
        assert isinstance(value, str) == isinstance(other[key], str), key
        assert slots(value) - {"count"} == slots(other[key]) - {"count"}, key


@pytest.mark.parametrize("language", LANGUAGES)
def test_plurals_have_the_forms_of_the_language(language: str) -> None:
    for key, value in KEYS[language].items():
        if isinstance(value, str):
            assert value.strip(), key
            continue
        assert set(value) <= PLURALS[language], key
        assert {"one", "other"} <= set(value) or language == "ar", key


def used() -> tuple[set[str], list[re.Pattern[str]]]:
    """Return the keys in modules, and patterns of those that are put together."""
    found, patterns = set(re.findall(r'words\["(\w+)"\]', SERVER.read_text())), []
    found = {f"common.{name}" for name in found}
    for module in modules():
        for literal in literals(module.read_text()):
            if len(literal.texts) == 1 and KEY.fullmatch(literal.texts[0]):
                found.add(literal.texts[0])
            elif not literal.tag and literal.texts[0].split(".")[0] in AREAS and "." in literal.texts[0]:
                patterns.append(re.compile(r"[\w.]+".join(map(re.escape, literal.texts))))
    return found, patterns


def test_every_text_is_used() -> None:
    found, patterns = used()
    unused = [
        key for key in KEYS["en"] if key not in found and not any(one.fullmatch(key) for one in patterns)
    ]
    assert unused == []


def test_every_key_has_a_text() -> None:
    missing = {
        f"{module.relative_to(PAGE)}: {key}"
        for module in modules()
        for key in CALL.findall(module.read_text())
        if key not in KEYS["en"]
    }
    assert missing == set()


def spoken(literal: Literal) -> list[str]:
    """Return the words in a template that a reader would see or hear."""
    whole = "\0".join(literal.texts)
    heard = [found[2] or found[3] or "" for found in SPOKEN.finditer(whole)]
    shown = re.sub(r"<[^<>]*>", "\1", whole)
    return [text for text in [*heard, *re.split("[\0\1]", shown)] if LETTERS.search(text)]


@pytest.mark.parametrize("module", modules(), ids=lambda path: str(Path(path).relative_to(PAGE)))
def test_no_text_stands_in_a_module(module: Path) -> None:
    found = [
        f"{module.name}:{literal.line}: {text.strip()!r}"
        for literal in literals(module.read_text())
        if literal.tag == "html"
        for text in spoken(literal)
    ]
    assert found == []


def test_texts_in_templates_are_seen() -> None:
    (literal,) = literals('html`<p title="Hello there" class="a b">${x}<br/>Some text</p>`')
    assert spoken(literal) == ["Hello there", "Some text"]
    (tagless,) = literals("html`<${Button} icon=${x} onClick=${() => 1}>OK now<//>`")
    assert spoken(tagless) == ["OK now"]

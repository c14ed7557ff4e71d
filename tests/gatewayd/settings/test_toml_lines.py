import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.settings.toml_lines import locate_keys

EVERYTHING = '''\
# first = "no"
port = 8080
"quoted key" = 1 # after
'single' = 2
"esc\\u0061ped" = 3
text = "a # b = c ] } \\" \\\\"  # comment
long = """
[not.a.table]
not_a_key = "x" \\""" """
raw = \'\'\'
also_not = 1
ends with quotes\'\'\'\'\'
dotted.inner.leaf = 1
dotted.inner.other = 2
when = 1979-05-27 07:32:00
list = [
  "a", # one
  # two = 2

  [1,
   2], "]",
]
inline = { x = 1, "y z" = [ { deep = true } ] , w.v = 'q' }
empty = []
none = {}

[table]
key = 1
  [table."sub table"]
  key = 2
[[providers]]
name = "one"
[providers.extra]
x = 1
[[providers.models]]
id = "m1"
[[providers.models]]
id = "m2"
[[providers]]

name = "two"
[[providers.models]]
id = "m3"
'''


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Walk parsed TOML and give every key and element."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def test_every_key_and_element_has_a_line() -> None:
    assert set(locate_keys(EVERYTHING)) == set(places(tomllib.loads(EVERYTHING)))


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (("port",), "port = 8080"),
        (("escaped",), '"esc\\u0061ped" = 3'),
        (("quoted key",), '"quoted key" = 1 # after'),
        (("long",), 'long = """'),
        (("raw",), "raw = '''"),
        (("dotted", "inner"), "dotted.inner.leaf = 1"),
        (("dotted", "inner", "other"), "dotted.inner.other = 2"),
        (("list", 1), "  [1,"),
        (("list", 1, 1), '   2], "]",'),
        (("list", 2), '   2], "]",'),
        (("inline", "y z", 0, "deep"), "inline = { x = 1, \"y z\" = [ { deep = true } ] , w.v = 'q' }"),
        (("table", "sub table"), '  [table."sub table"]'),
        (("table", "sub table", "key"), "  key = 2"),
        (("providers", 0, "name"), 'name = "one"'),
        (("providers", 0, "extra", "x"), "x = 1"),
        (("providers", 0, "models", 1, "id"), 'id = "m2"'),
        (("providers", 1, "name"), 'name = "two"'),
        (("providers", 1, "models", 0, "id"), 'id = "m3"'),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_line_is_where_the_key_stands(place: tuple[str | int, ...], text: str, end: str) -> None:
    document = EVERYTHING.replace("\n", end)
    line = locate_keys(document)[place]
    assert document.split(end)[line - 1] == text


def test_a_table_of_an_array_begins_at_its_header() -> None:
    assert locate_keys("\n[[providers]]\nname = 'a'\n[[providers]]\n") == {
        ("providers",): 2,
        ("providers", 0): 2,
        ("providers", 0, "name"): 3,
        ("providers", 1): 4,
    }


def test_no_line_end_at_the_end() -> None:
    assert locate_keys("a = 1\nb = 2") == {("a",): 1, ("b",): 2}


def test_an_empty_document_has_no_places() -> None:
    assert locate_keys("") == {}
    assert locate_keys("  # nothing") == {}


texts = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\x7f"), max_size=8)


def basic(text: str) -> str:
    escaped = "".join(f"\\u{ord(char):04x}" if ord(char) < 32 or char in '"\\' else char for char in text)
    return f'"{escaped}"'


scalars = st.one_of(
    texts.map(basic),
    st.text("ab#[]{}=,\"'\n", max_size=6).map(lambda text: f'"""{basic(text)[1:-1]}"""'),
    st.text('ab#[]{}=,"\\', max_size=6).map(lambda text: f"'{text}'"),
    st.integers(-9, 9999).map(str),
    st.booleans().map(lambda value: str(value).lower()),
)
gaps = st.sampled_from(["", "\n", " # x = 1 ]\n", "\n\n  "])
values = st.recursive(
    scalars,
    lambda inner: st.lists(st.tuples(gaps, inner, gaps), max_size=3).map(
        lambda parts: "[" + ",".join(before + value + after for before, value, after in parts) + "]"
    ),
    max_leaves=6,
)


@given(st.lists(st.tuples(texts, values, gaps), max_size=6, unique_by=lambda row: row[0]))
def test_generated_documents(rows: list[tuple[str, str, str]]) -> None:
    document = ""
    expected = {}
    for key, value, gap in rows:
        expected[(key,)] = document.count("\n") + 1
        document += f"{basic(key)} = {value}{gap}\n"
    found = locate_keys(document)
    assert set(found) == set(places(tomllib.loads(document)))
    assert {place: line for place, line in found.items() if len(place) == 1} == expected

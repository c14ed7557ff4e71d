"""No regular expression of the source takes longer than in proportion to the text, whatever the text.

Each is found by the syntax tree. A checker looks for texts on which a single try at one place takes the
square of the length or worse; where an expression is searched for, words are looked for on which the tries at
all places together do.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest

from tests.clients.node import NodeMissingError
from tests.conftest import missing
from tests.expressions.attacks import attacked, takes_long
from tests.expressions.finding import Expression, Made, Module, expressions, modules, read_module
from tests.expressions.javascript import Translator
from tests.expressions.known import digest, safe_digests
from tests.expressions.recheck import Finding, check

# The checker takes fifteen seconds of two processors for all expressions, and longer where others work.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

MADE = {
    "gatewayd.dialects.providers.family": "of constants, over ids of at most 256 characters",
    "gatewayd.dialects.providers.refused_fields": "of constants, over the start of a refusal",
    "gatewayd.dialects.providers.table": "of constants, over ids of at most 256 characters",
    "gatewayd.upstream.sources.failures": "of a provider's key, over at most MAX_EXAMINED characters",
    "gatewayd.scim.filters.grammar": "of fixed words, over at most MAX_TEXT_CHARACTERS characters",
    "gatewayd.plugins.builtin.redact": "an administrator's own, which looks at 200 characters at once",
}
"""Modules that put an expression together while they run, and why it is linear."""

PLACED = {
    "gatewayd.settings.toml_lines._STRING": "handed to a function that matches where it stands",
    **dict.fromkeys(
        (
            f"gatewayd.dialects.anthropic.hosts._{name}_NAME"
            for name in ("MANTLE", "INVOKE", "VERTEX", "AZURE")
        ),
        "matched with the whole name of a host",
    ),
}
"""Expressions that are only matched at one place, although the syntax tree does not tell."""

SAMPLE = """
ONE = re.compile('a', re.I)
TWO = re.compile('b')
MORE = [re.compile('c')]
NONE = re.compile('d')
ONE.match(x), ONE.fullmatch(x), TWO.match(x), TWO.sub(x), give(NONE)
def f(x):
    re.split(x, 'g'), re.match('e', x), re.search('f', x, flags=re.S), re.sub(pattern='h', string=x)
"""

HIDDEN = """
import re as expressions
from re import search
find = re.search
f(re), map(re.compile, x), re.search('a', x), re.I
"""


# Each took from seconds to for ever on a text that somebody sends: a single try, or all tries together.
SLOW_TRIES = {
    "uploads": r"""\s*(?:\"((?:\\[\"\\]|[^\"])*)\"|([^\s;\"]+))\s*""",
    "detect": r"""(?s)(?:<!--.*?-->\s*)*<svg""",
    "roff condition": r"""\s*(!?)\s*(?:([nteov])(?=[\s\\])|(\S+))\s*""",
    "redact repeat": r"""\{(\d*)(,?)(\d*)\}""",
    "charset": r"""charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]{1,40})""",
    "frontmatter": r"""(?i)^\s*([a-z_]+):\s*(.*?)\s*$""",
    "parameter": r"""^:params?(?:\s+[^:\s]+)*?\s+\*{0,2}(\w+)\s*:\s*(.*)$""",
    "nested": r"""(?:a+)+$""",
    "nested with a bound": r"""(?:a{1,30}){1,30}b""",
}
SLOW_SEARCHES = {
    "history": r"""(?s)<details type="(?:reasoning|tool_calls|code_interpreter)".*?</details>""",
    "extractive": r"""(?s)<source\b([^>]*)>(.*?)</source>""",
    "detect tag": r"""(?i)</?(?:p|div|a|b|br|h[1-6]|table|ul|ol|span|meta|title|pre)\b[^>]*>""",
    "roff number": r"""\\n(?:\((..)|\[([^\]]*)\]|([+-]?.))""",
    "openapi": r"""\{(\w+)(?::[^}]*)?\}""",
    "redact account": r"""(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9])* ?\Z""",
    "redact number": r"""[+(]?\d[\d ()./-]*\Z""",
    "duration": r"""(-?\d+(?:\.\d+)?)(ms|s|m|h|d|w)""",
    "class": r"""(?m)^\s*class\s+UserValves\b""",
    "look-behind": r"""(?<!\w)[\w.]+@""",
    "blanks": r"""\s+$""",
    "large bound": r"""\d{1,50000}x""",
    "condition": r"""(a)?(?(1)b|c+)d""",
    "edges": r"""^[\W\d_]+|[\W\d_]+$""",
}


@cache
def source() -> list[Module]:
    return modules()


@cache
def found_in_source() -> list[Expression | Made]:
    return list(expressions(source()))


@pytest.fixture(scope="module", autouse=True)
def _let_go() -> Iterator[None]:
    """Hold nothing of the source for the tests of other files."""
    yield
    found_in_source.cache_clear()
    source.cache_clear()


def read_expressions() -> list[Expression]:
    return [found for found in found_in_source() if isinstance(found, Expression)]


def sources_in_source() -> dict[str, list[tuple[str, str]]]:
    return {found.place: Translator(found.pattern, found.flags).written() for found in read_expressions()}


@pytest.fixture(scope="module")
def findings() -> dict[str, list[Finding]]:
    """Return what the checker finds of each expression, the slow ones with them."""
    written = sources_in_source() | {
        name: Translator(pattern, 0).written() for name, pattern in SLOW_TRIES.items()
    }
    every = dict.fromkeys(source for sources in written.values() for source in sources)
    unknown = [source for source in every if digest(source) not in safe_digests()]
    found = dict.fromkeys(every, Finding("safe", None, None))
    found.update(zip(unknown, checked(unknown), strict=True))
    return {name: [found[source] for source in sources] for name, sources in written.items()}


def checked(sources: list[tuple[str, str]]) -> list[Finding]:
    try:
        return check(sources)
    except NodeMissingError as error:
        missing("node", str(error))
        raise


def test_expressions_are_found() -> None:
    places = {found.place for found in read_expressions()}
    assert {"gatewayd.http.middleware.UNSAFE_PATH", "gatewayd.pipeline.runs.history._DETAILS"} <= places
    assert len(places) > 120
    assert [place for module in source() for place in module.hidden] == []


def test_what_is_put_together_is_known() -> None:
    assert {found.place.partition(":")[0] for found in found_in_source() if isinstance(found, Made)} == set(
        MADE
    )


def test_where_expressions_begin_is_seen() -> None:
    module = read_module("sample", SAMPLE)
    found = list(expressions([replace(module, values=lambda: {"re": re})]))
    known = [each for each in found if isinstance(each, Expression)]
    assert {each.pattern: (each.flags, each.is_anchored) for each in known} == {
        "a": (re.I, True),
        "b": (0, False),
        "c": (0, False),
        "d": (0, False),
        "e": (0, True),
        "f": (re.S, False),
        "h": (0, False),
    }
    assert [each for each in found if isinstance(each, Made)] == [Made("sample:8")]


@pytest.mark.parametrize(
    ("user", "is_anchored"),
    [
        ("from a.b import ONE\nONE.match(x)", True),
        ("from a.b import ONE\nONE.search(x)", False),
        ("from a.b import ONE as T\nT.search(x)", False),
        ("from a import b\nb.ONE.search(x)", False),
        ("from a import b\nb.ONE.fullmatch(x)", True),
        ("from a import b as c\nc.ONE.search(x)", False),
        ("class ONE: pass\nONE.search(x)", True),
    ],
)
def test_uses_in_other_modules_are_seen(user: str, is_anchored: bool) -> None:
    owner = read_module("a.b", "ONE = re.compile('a')\nONE.match(x)")
    both = [replace(owner, values=lambda: {"re": re}), read_module("a.c", user)]
    assert list(expressions(both)) == [Expression("a.b.ONE", "a", 0, is_anchored)]


def test_uses_that_are_not_read_are_seen() -> None:
    places = sorted(read_module("sample", HIDDEN).hidden)
    assert places == ["sample: as expressions", "sample: from re", "sample:4", "sample:5", "sample:5"]


@pytest.mark.real("node")
def test_one_try_is_linear(findings: dict[str, list[Finding]]) -> None:
    bad = {found.place: _faults(findings[found.place]) for found in read_expressions()}
    assert {place: faults for place, faults in bad.items() if faults} == {}


@pytest.mark.long
@pytest.mark.real("node")
def test_what_is_noted_as_safe_is_safe() -> None:
    noted = [
        source
        for sources in sources_in_source().values()
        for source in sources
        if digest(source) in safe_digests()
    ]
    assert [
        source for source, found in zip(noted, checked(noted), strict=True) if found.status != "safe"
    ] == []


def test_another_checker_knows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    source = next(source for sources in sources_in_source().values() for source in sources)
    before = digest(source)
    monkeypatch.setattr("tests.expressions.known.checker_digest", lambda: "of another version")
    assert digest(source) != before
    assert digest((source[0], f"{source[1]}m")) != digest(source) != digest((f"{source[0]}x", source[1]))


def test_all_tries_together_are_linear() -> None:
    searched = [found for found in read_expressions() if not found.is_anchored and found.place not in PLACED]
    bad = {found.place: attacked(found.pattern, found.flags) for found in searched}
    assert {place: word for place, word in bad.items() if word is not None} == {}
    assert set(PLACED) <= {found.place for found in read_expressions()}


@pytest.mark.real("node")
@pytest.mark.parametrize("name", SLOW_TRIES)
def test_a_try_that_is_not_linear_is_seen(findings: dict[str, list[Finding]], name: str) -> None:
    assert _faults(findings[name])


@pytest.mark.parametrize("name", SLOW_SEARCHES)
def test_a_search_that_is_not_linear_is_seen(name: str) -> None:
    assert attacked(SLOW_SEARCHES[name], 0) is not None


def test_what_takes_long_is_interrupted() -> None:
    assert takes_long(lambda: re.match(r"(?:a|a)*$", "a" * 60 + "b"))
    assert not takes_long(lambda: re.match("a*$", "a" * 60))


def _faults(findings: list[Finding]) -> list[Finding]:
    return [found for found in findings if found.status != "safe"]

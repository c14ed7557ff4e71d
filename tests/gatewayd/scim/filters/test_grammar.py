import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim.attributes import ENTERPRISE, USER
from gatewayd.scim.filters.conditions import Operator
from gatewayd.scim.filters.grammar import (
    MAX_COMPARISONS,
    MAX_DEPTH,
    MAX_OPERATORS,
    MAX_TEXT_CHARACTERS,
    parse_filter,
    parse_path,
)
from gatewayd.scim.filters.syntax import (
    AttributeComparison,
    AttributeName,
    AttributePresence,
    Conjunction,
    Disjunction,
    FilterExpression,
    Literal,
    Negation,
    PatchPath,
    ValueSelection,
)
from gatewayd.scim.records import ResourceType
from tests.fakes.accounts.scim_filters import (
    any_nodes,
    inner_nodes,
    nodes,
    spoilt_texts,
    written,
    written_path,
)

ADA = AttributeComparison(AttributeName("userName"), Operator.EQ, "ada")
TITLE = AttributePresence(AttributeName("title"))
WORK = AttributeComparison(AttributeName("type"), Operator.EQ, "work")


def refused_filter(text: str) -> str:
    with pytest.raises(GatewayError) as caught:
        parse_filter(text)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert (caught.value.code, caught.value.param) == ("invalidFilter", "filter")
    return caught.value.message.removeprefix("cannot accept filter: ")


def refused_path(text: str) -> str:
    with pytest.raises(GatewayError) as caught:
        parse_path(text)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert (caught.value.code, caught.value.param) == ("invalidPath", "path")
    return caught.value.message.removeprefix("cannot accept path: ")


# Filters --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operator", list(Operator))
@pytest.mark.parametrize("case", [str.lower, str.upper, str.title])
def test_every_operator_is_read_in_any_case(operator: Operator, case: type[str]) -> None:
    text = f'userName {case(operator.value)} "ada"'

    assert parse_filter(text) == AttributeComparison(AttributeName("userName"), operator, "ada")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"x"', "x"),
        ('""', ""),
        ('"True"', "True"),
        (r'"a\"b\\c\/d\n"', 'a"b\\c/d\n'),
        (r'"\u00e9\ud83d\ude00"', "é😀"),
        ('"é😀"', "é😀"),
        ('"a) and (b"', "a) and (b"),
        ('"((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((("', "(" * 65),
        ("true", True),
        ("False", False),
        ("NULL", None),
        ("0", 0),
        ("-12", -12),
        ("1.5", 1.5),
        ("1e3", 1000.0),
    ],
)
def test_every_literal_is_read(text: str, value: Literal) -> None:
    node = parse_filter(f"a eq {text}")

    assert node == AttributeComparison(AttributeName("a"), Operator.EQ, value)
    assert isinstance(node, AttributeComparison)
    assert type(node.value) is type(value)


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("title pr", TITLE),
        ("title PR", TITLE),
        ("  title   pr ", TITLE),
        ("(title pr)", TITLE),
        ("((title pr))", TITLE),
        ('userName eq "ada" and title pr', Conjunction((ADA, TITLE))),
        ('userName Eq "ada" AND title pr', Conjunction((ADA, TITLE))),
        ('userName eq "ada" or title pr or title pr', Disjunction((ADA, TITLE, TITLE))),
        ('title pr or userName eq "ada" and title pr', Disjunction((TITLE, Conjunction((ADA, TITLE))))),
        ('(title pr or userName eq "ada") and title pr', Conjunction((Disjunction((TITLE, ADA)), TITLE))),
        ("not (title pr)", Negation(TITLE)),
        ("NOT(title pr)", Negation(TITLE)),
        ('emails[type eq "work"]', ValueSelection(AttributeName("emails"), WORK)),
        (
            'emails[type eq "work" and not (value pr)]',
            ValueSelection(
                AttributeName("emails"),
                Conjunction((WORK, Negation(AttributePresence(AttributeName("value"))))),
            ),
        ),
        (
            # As Entra ID writes it.
            'emails[type eq "work"].value eq "a@b"',
            ValueSelection(
                AttributeName("emails"),
                Conjunction((WORK, AttributeComparison(AttributeName("value"), Operator.EQ, "a@b"))),
            ),
        ),
        ("members.$ref pr", AttributePresence(AttributeName("members", "$ref"))),
        (f"{USER.urn}:name.givenName pr", AttributePresence(AttributeName("name", "givenName", USER.urn))),
        (f"{USER.urn}:active pr", AttributePresence(AttributeName("active", None, USER.urn))),
        # Words that begin as operators do.
        ("never pr", AttributePresence(AttributeName("never"))),
        (
            "not_me pr and nothing pr",
            Conjunction(
                (AttributePresence(AttributeName("not_me")), AttributePresence(AttributeName("nothing")))
            ),
        ),
    ],
)
def test_the_grammar_of_filters(text: str, node: FilterExpression) -> None:
    assert parse_filter(text) == node


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        (" \t\n", "it is empty"),
        ("userName eq", "it ends too soon, after column 11"),
        ("userName", "it ends too soon, after column 8"),
        ("(title pr ", "it ends too soon, after column 9"),
        ('emails[type eq "work"', "it ends too soon, after column 21"),
        ("title pr and ", "it ends too soon, after column 12"),
        ("not (", "it ends too soon, after column 5"),
        ('userName is "ada"', """it is malformed at column 10, 'is "ada"'"""),
        ("userName eq ada", "it is malformed at column 13, 'ada'"),
        ("userName eq 'ada'", """it is malformed at column 13, "'ada'\""""),
        ('userName eq "ada', """it is malformed at column 13, '"ada'"""),
        ('userName eq "a\\x"', """it is malformed at column 13, '"a\\\\x"'"""),
        ('userName eq "a\nb"', """it is malformed at column 13, '"a\\nb"'"""),
        ("title pr)", "it is malformed at column 9, ')'"),
        ("title pr\ntitle pr", "it is malformed at column 10, 'title pr'"),
        ("not title pr", "it is malformed at column 5, 'title pr'"),
        ("title pr and and title pr", "it is malformed at column 18, 'title pr'"),
        ("a eq 01", "it is malformed at column 7, '1'"),
        ("a eq 1e999", "number out of range: 1e999"),
        ("a eq NaN", "it is malformed at column 6, 'NaN'"),
        ("emails[type[value pr]]", "it is malformed at column 12, '[value pr]]'"),
        ("é pr", "it is malformed at column 1, 'é pr'"),
        # Neither is a letter of ASCII, though another case of it is.
        ("\u017fn pr", "it is malformed at column 1, '\u017fn pr'"),
        ('a \u017fw "b"', """it is malformed at column 3, '\u017fw "b"'"""),
        ("http://example.org:a pr", "it is malformed at column 5, '://example.org:a pr'"),
        ("a.b.c pr", "it is malformed at column 4, '.c pr'"),
        ("a.b[c pr]", "a value selection cannot apply to the sub-attribute 'a.b'"),
        ('a eq "\\u0000"', "the value for a has a NUL or an unpaired surrogate"),
        ('a pr or a eq "\\ud800"', "the value for a has a NUL or an unpaired surrogate"),
        ('emails[not (a eq "\ud800")]', "the value for a has a NUL or an unpaired surrogate"),
    ],
)
def test_what_is_no_filter_is_refused_and_the_place_named(text: str, reason: str) -> None:
    assert refused_filter(text) == reason


# Limits ---------------------------------------------------------------------------------------------------


def test_a_filter_may_be_as_long_as_the_limit() -> None:
    frame = 'userName eq ""'
    text = f'userName eq "{"x" * (MAX_TEXT_CHARACTERS - len(frame))}"'

    assert parse_filter(text) == AttributeComparison(
        AttributeName("userName"), Operator.EQ, "x" * (MAX_TEXT_CHARACTERS - len(frame))
    )
    assert refused_filter(f"{text} ") == "it is longer than 8192 characters"


def test_a_filter_may_have_as_many_comparisons_as_the_limit() -> None:
    node = parse_filter(" or ".join(["a pr"] * MAX_COMPARISONS))

    assert isinstance(node, Disjunction)
    assert len(node.nodes) == MAX_COMPARISONS
    assert refused_filter(" or ".join(["a pr"] * (MAX_COMPARISONS + 1))) == "it has more than 100 comparisons"
    inner = " or ".join(["a pr"] * MAX_COMPARISONS)
    assert refused_filter(f"not (b pr) and a[{inner}]") == "it has more than 100 comparisons"


def test_parentheses_may_be_as_deep_as_the_limit() -> None:
    assert parse_filter(f"{'(' * MAX_DEPTH}title pr{')' * MAX_DEPTH}") == TITLE
    assert refused_filter("(" * 51 + "title pr" + ")" * 51) == (
        "it nests deeper than 50 parentheses at column 51, '(title pr)))))))))))'"
    )
    # Side by side they are not deep.
    assert isinstance(parse_filter(" and ".join(["(title pr)"] * 100)), Conjunction)


def test_a_nested_not_has_a_limit() -> None:
    def nested(depth: int) -> str:
        return f"{'not (' * depth}title pr{')' * depth}"

    assert isinstance(parse_filter(nested(MAX_OPERATORS)), Negation)
    assert isinstance(parse_filter(f"a[{nested(MAX_OPERATORS - 1)}]"), ValueSelection)
    assert parse_path(f"a[{nested(MAX_OPERATORS - 1)}]").inner
    for text in (nested(MAX_OPERATORS + 1), nested(40), f"a[{nested(MAX_OPERATORS)}]"):
        assert refused_filter(text) == "it nests more than 32 expressions"
    assert refused_path(f"a[{nested(MAX_OPERATORS)}]") == "it nests more than 32 expressions"


def test_a_number_may_not_be_huge() -> None:
    assert refused_filter(f"a eq {'9' * 101}").startswith("a number has more than 100 digits at column 6")
    assert refused_filter(f"a eq {'9' * 5000}").startswith("a number has more than 100 digits at column 6")
    assert refused_filter(f"a eq -1.{'9' * 101}").startswith("a number has more than 100 digits at column 9")
    assert parse_filter(f'a eq "{"9" * 5000}"')
    # A name is no number.
    assert parse_filter(f"a{'9' * 101} pr") == AttributePresence(AttributeName(f"a{'9' * 101}"))


PIECES = (
    *("(", ")", "not (", "not(", "a pr and ", "a[", "[", "a[not(", "a eq ", "a eq null or ", "((a pr) or "),
    *('"', '"\\', '\\"', '"\\"', "9", "-", "1e9", "a", "a.", "$", "urn:", "urn:a:", ":", " ", "\n"),
    *("é", "\0", "\ud800"),
)


def outcome(parse: Callable[[str], object], text: str) -> GatewayError | None:
    """Return the refusal of a text, None when it is read."""
    try:
        parse(text)
    except GatewayError as error:
        return error
    return None


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("tail", ["", "a pr", ")"])
@pytest.mark.timeout(20)
def test_hostile_texts_take_little_time_and_memory(piece: str, tail: str) -> None:
    text = (piece * MAX_TEXT_CHARACTERS)[: MAX_TEXT_CHARACTERS - len(tail)] + tail

    tracemalloc.start()
    try:
        refusals = [outcome(parse, text) for parse in (parse_filter, parse_path)]
        assert tracemalloc.get_traced_memory()[1] < 64 * 1024 * 1024
    finally:
        tracemalloc.stop()
    assert all(refusal is None or len(refusal.message) < 300 for refusal in refusals)


@pytest.mark.parametrize("size", [MAX_TEXT_CHARACTERS, 100_000])
@pytest.mark.parametrize("piece", ["(", "not (", "not(", "a pr and ", "a[", 'a eq "', '"', "9"])
def test_thousands_of_openings_are_refused(piece: str, size: int) -> None:
    assert refused_filter((piece * size)[:size])
    assert refused_path((piece * size)[:size])


# Paths ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("members", PatchPath(AttributeName("members"))),
        (" members\t", PatchPath(AttributeName("members"))),
        ("name.givenName", PatchPath(AttributeName("name", "givenName"))),
        ("members.$ref", PatchPath(AttributeName("members", "$ref"))),
        ('emails[type eq "work"]', PatchPath(AttributeName("emails"), WORK)),
        (' emails[ type eq "work" ] ', PatchPath(AttributeName("emails"), WORK)),
        ('emails[type eq "work"].value', PatchPath(AttributeName("emails"), WORK, "value")),
        ('emails[type Eq "work"].Value', PatchPath(AttributeName("emails"), WORK, "Value")),
        (
            'members[value eq "x"]',
            PatchPath(
                AttributeName("members"), AttributeComparison(AttributeName("value"), Operator.EQ, "x")
            ),
        ),
        # Erratum 7122: without brackets.
        ('emails.type eq "work"', PatchPath(AttributeName("emails"), WORK)),
        (
            'members eq "x"',
            PatchPath(
                AttributeName("members"), AttributeComparison(AttributeName("value"), Operator.EQ, "x")
            ),
        ),
        (
            "emails.primary pr",
            PatchPath(AttributeName("emails"), AttributePresence(AttributeName("primary"))),
        ),
        ("emails pr", PatchPath(AttributeName("emails"), AttributePresence(AttributeName("value")))),
        (f"{USER.urn}:name.givenName", PatchPath(AttributeName("name", "givenName", USER.urn))),
        (f"{USER.urn}:active", PatchPath(AttributeName("active", None, USER.urn))),
        (
            f'{USER.urn}:emails[type eq "work"].value',
            PatchPath(AttributeName("emails", None, USER.urn), WORK, "value"),
        ),
        (f'{USER.urn}:emails.type eq "work"', PatchPath(AttributeName("emails", None, USER.urn), WORK)),
        (f"{ENTERPRISE}:manager.value", PatchPath(AttributeName("manager", "value", ENTERPRISE))),
    ],
)
def test_the_grammar_of_paths(text: str, path: PatchPath) -> None:
    assert parse_path(text) == path


@pytest.mark.parametrize("urn", [USER.urn, ENTERPRISE, ENTERPRISE.upper()])
def test_the_urn_of_a_schema_alone_can_be_told_by_its_text(urn: str) -> None:
    path = parse_path(urn)

    assert (str(path.name), path.inner, path.part) == (urn, None, None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        ("  ", "it is empty"),
        ("\xa0", "it is empty"),
        ("a b", "it is malformed at column 3, 'b'"),
        ("emails[", "it ends too soon, after column 7"),
        ("emails[]", "it is malformed at column 8, ']'"),
        ("emails[type eq work]", "it is malformed at column 16, 'work]'"),
        ('emails[type eq "work"].', "it ends too soon, after column 23"),
        ('emails[type eq "work"].value.x', "it is malformed at column 29, '.x'"),
        ('emails[type eq "work"].value eq "x"', """it is malformed at column 30, 'eq "x"'"""),
        ("a pr and b pr", "it is malformed at column 6, 'and b pr'"),
        ("not (a pr)", "it is malformed at column 5, '(a pr)'"),
        ("(a)", "it is malformed at column 1, '(a)'"),
        ("/name/givenName", "it is malformed at column 1, '/name/givenName'"),
        ("name..givenName", "it is malformed at column 5, '..givenName'"),
        ("members[0]", "it is malformed at column 9, '0]'"),
        ("name.a[b pr]", "a value selection cannot apply to the sub-attribute 'name.a'"),
        ('members[value eq "\\ud800"]', "the value for value has a NUL or an unpaired surrogate"),
    ],
)
def test_what_is_no_path_is_refused_and_the_place_named(text: str, reason: str) -> None:
    assert refused_path(text) == reason


def test_a_path_has_the_limits_of_a_filter() -> None:
    assert refused_path("a" * (MAX_TEXT_CHARACTERS + 1)) == "it is longer than 8192 characters"
    many = " or ".join(["a pr"] * (MAX_COMPARISONS + 1))
    assert refused_path(f"members[{many}]") == "it has more than 100 comparisons"


def test_a_long_name_is_not_sent_back_whole() -> None:
    assert len(refused_filter(f'{"a" * 8000} eq "\\u0000"')) < 300
    assert len(refused_filter(f"{'a' * 8000}.b[c pr]")) < 300


# Any filter, any text -------------------------------------------------------------------------------------


NODES = nodes(ResourceType.USER) | nodes(ResourceType.GROUP) | any_nodes()
SEEDS = st.none() | st.integers(0, 2**32)
PATHS = st.builds(
    PatchPath,
    st.builds(AttributeName, st.just("emails"), st.none(), st.sampled_from([None, USER.urn])),
    inner_nodes(ResourceType.USER, "emails"),
    st.sampled_from([None, "value", "$ref"]),
)


@given(node=NODES, seed=SEEDS)
@settings(deadline=None)
def test_whatever_filter_can_be_written_is_read_as_it_was_meant(
    node: FilterExpression, seed: int | None
) -> None:
    # `repr` tells 1 from 1.0 and True, `==` does not.
    assert repr(parse_filter(written(node, seed))) == repr(node)


@given(path=PATHS, seed=SEEDS)
@settings(deadline=None)
def test_whatever_path_can_be_written_is_read_as_it_was_meant(path: PatchPath, seed: int | None) -> None:
    assert parse_path(written_path(path, seed)) == path


@given(text=st.text() | spoilt_texts(ResourceType.USER) | spoilt_texts(ResourceType.GROUP))
@settings(deadline=None, max_examples=400)
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse, code in ((parse_filter, "invalidFilter"), (parse_path, "invalidPath")):
        refusal = outcome(parse, text)
        assert refusal is None or (refusal.code == code and refusal.message.isprintable())
        assert refusal is None or len(refusal.message) < 400

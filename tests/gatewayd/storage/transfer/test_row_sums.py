import pytest

from gatewayd.storage.transfer.row_sums import (
    RowSummer,
    TableSum,
    ValueKind,
    canonical_json,
    differences,
    is_content,
)

PLAIN, TRUTH, JSON = ValueKind.PLAIN, ValueKind.TRUTH, ValueKind.JSON


def total(kind: ValueKind, *values: object) -> TableSum:
    summer = RowSummer([kind])
    for value in values:
        summer.add([value])
    return summer.total()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ('{"b":1,"a":[1.0,1e2]}', '{"a": [1.0, 100], "b": 1}'),
        ('{"a":1e22}', '{"a": 10000000000000000000000}'),
        ('{"a":1e23}', '{"a": 100000000000000000000000}'),
        ('{"a":1.8446744073709552e19}', '{"a": 18446744073709552000}'),
        ('{"a":"\\u00e4"}', '{"a": "ä"}'),
        ('{"a":1e-7}', '{"a": 0.0000001}'),
    ],
)
def test_one_value_has_one_sum(first: str, second: str) -> None:
    assert canonical_json(first) == canonical_json(second)
    assert total(JSON, first) == total(JSON, second)


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        (JSON, '{"a":1}', '{"a":"1"}'),
        (JSON, '{"a":[1,2]}', '{"a":[2,1]}'),
        (JSON, "{}", None),
        (JSON, "{damaged", "{damaged "),
        (TRUTH, 0, None),
        (PLAIN, "1", 1),
        (PLAIN, b"a", "a"),
        (PLAIN, "", None),
    ],
)
def test_other_values_have_another(kind: ValueKind, first: object, second: object) -> None:
    assert total(kind, first) != total(kind, second)


def test_truth_is_one_on_both_engines_and_order_is_nothing() -> None:
    assert total(TRUTH, 1, 0) == total(TRUTH, False, True)
    assert total(PLAIN, "a", "b") == total(PLAIN, "b", "a")
    assert total(PLAIN, "a", "a") != total(PLAIN, "a")
    two = RowSummer([PLAIN, PLAIN])
    two.add(["ab", "c"])
    other = RowSummer([PLAIN, PLAIN])
    other.add(["a", "bc"])
    assert two.total() != other.total()


def test_derived_tables_are_no_content() -> None:
    derived = [
        "words_1",
        "words_12_data",
        "space_vectors_3",
        "collection_vectors_3_44",
        "vector_backlog",
        "collection_words",
        "collection_words_44",
        "word_backlog",
        "sqlite_sequence",
        "tortoise_migrations",
    ]
    assert [name for name in (*derived, "gatewayd_incomplete") if is_content(name)] == []
    assert is_content("users")
    assert is_content("words")


def test_differences_name_the_table() -> None:
    one, two = TableSum(1, "a"), TableSum(2, "a")
    assert differences({"t": one, "u": one}, {"t": one, "u": two}) == ["the table u has 2 rows instead of 1"]
    assert differences({"t": one}, {"t": TableSum(1, "b")}) == ["the table t has other contents"]
    assert differences({"t": one}, {}) == ["the table t is missing"]

"""The small languages of the command line."""

from pathlib import Path

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.values import (
    by_name,
    parse_duration,
    parse_flags,
    parse_pairs,
    parse_size,
    parse_values,
    read_json,
    read_object,
    split_permission,
    tree_of,
)


def test_pairs_keep_everything_after_the_first_equals_sign() -> None:
    assert parse_pairs(["A=1", "B=x=y", "C="]) == {"A": "1", "B": "x=y", "C": ""}


@pytest.mark.parametrize("text", ["A", "=1", ""])
def test_bad_pairs(text: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse_pairs([text])
    assert caught.value.exit_code == 2


def test_flags_and_trees() -> None:
    flags = parse_flags(["a.b=true", "a.c=FALSE", "d.e=true"])
    assert tree_of(flags) == {"a": {"b": True, "c": False}, "d": {"e": True}}
    for bad in ("a.b=1", "ab=true"):
        with pytest.raises(CommandError):
            parse_flags([bad])


def test_permission_names() -> None:
    assert split_permission("features.api_keys") == ("features", "api_keys")
    for bad in ("features", ".x", "x."):
        with pytest.raises(CommandError):
            split_permission(bad)


@pytest.mark.parametrize(
    ("text", "seconds"), [("45s", 45), ("90m", 5400), ("12h", 43200), ("30d", 2592000), ("2w", 1209600)]
)
def test_durations(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0d", "-1d", "1", "1y", "1.5h", "1 d", "12345678901s"])
def test_bad_durations(text: str) -> None:
    with pytest.raises(CommandError):
        parse_duration(text)


def test_values_by_name() -> None:
    assert by_name({"okta": "1", "entra": 2}) == ["okta=1", "entra=2"]
    assert by_name({}) == []


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("500", 500), ("64K", 65536), ("20m", 20 << 20), ("2G", 2 << 30), ("1T", 1 << 40)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "K", "-1", "1.5M", "1 M", "1MB", "1P", "1234567890123456"])
def test_bad_sizes(text: str) -> None:
    with pytest.raises(CommandError):
        parse_size(text)


@pytest.mark.parametrize("text", ["NaN", "[-Infinity]", "{", ""])
def test_what_would_become_something_else_is_no_json(text: str) -> None:
    assert read_json('{"a": [1.5, null]}') == {"a": [1.5, None]}
    with pytest.raises(ValueError, match=r"no JSON|Expecting"):
        read_json(text)


def test_what_is_nested_too_deeply_is_no_json() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        read_json("[" * 100_000)
    assert parse_values(["a=" + "[" * 100_000]) == {"a": "[" * 100_000}


def test_objects_in_files(tmp_path: Path) -> None:
    path = tmp_path / "object.json"
    path.write_text('{"a": 1}\n')
    assert read_object(str(path), "--spec") == {"a": 1}
    for text, reason in (
        ("[]", "it is not an object"),
        ("{", "it is not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("", "it is empty"),
    ):
        path.write_text(text)
        with pytest.raises(CommandError, match=f"--spec .*{reason}") as caught:
            read_object(str(path), "--spec")
        assert (caught.value.exit_code, caught.value.param) == (2, "--spec")


def test_values_are_json_or_text() -> None:
    pairs = ["a=1", "b=true", 'c=["x"]', "d=text", "e=NaN", "f=", 'g="1"', "h=null"]
    found = {"a": 1, "b": True, "c": ["x"], "d": "text", "e": "NaN", "f": "", "g": "1", "h": None}
    assert parse_values(pairs) == found

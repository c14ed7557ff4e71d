"""Tests for gatewayd.catalog.custom_models."""

from dataclasses import replace

import pytest

from gatewayd.catalog.custom_models import add_custom_models, check_base, check_family
from gatewayd.catalog.failover import Candidate
from gatewayd.catalog.records import ModelRecord
from gatewayd.errors import GatewayError
from tests.fakes.providers.models import FakeSource, make_model


def record(model_id: str, base_id: str | None) -> ModelRecord:
    return ModelRecord(model_id, "u1", model_id.upper(), base_id, created_at=7)


def test_a_custom_model_is_asked_where_its_base_is() -> None:
    one, two = FakeSource("one", []), FakeSource("two", [])
    listed = {"b": (Candidate(make_model("b"), two), Candidate(make_model("b"), one))}
    merged = add_custom_models(listed, [record("c", "b"), record("b", None), record("lost", "gone")])  # type: ignore[arg-type]
    assert set(merged) == {"b", "c"}
    assert [found.source for found in merged["c"]] == [two, one]
    model = merged["c"][0].model
    assert (model.id, model.name, model.created) == ("c", "C", 7)
    assert model.upstream_id == make_model("b").upstream_id
    assert model.detail["preset"] is True


@pytest.mark.parametrize(
    ("model_id", "base_id", "words"),
    [
        ("a", "a", "its own base"),
        ("a", "c", "is based on 'b'"),
        ("b", "x", "'c' is based on this"),
        ("a", "", "empty"),
    ],
)
def test_models_stand_on_listed_ones_alone(model_id: str, base_id: str, words: str) -> None:
    with pytest.raises(GatewayError, match=words) as raised:
        check_base(record(model_id, base_id), {"c": record("c", "b")})
    assert raised.value.param == "base_model_id"


def test_a_record_may_change_its_base() -> None:
    check_base(record("c", "x"), {"c": record("c", "b")})


def test_base_without_a_tag_is_the_latest() -> None:
    source = FakeSource("one", [])
    listed = {"b:latest": (Candidate(make_model("b:latest"), source),)}
    assert "c" in add_custom_models(listed, [record("c", "b")])  # type: ignore[arg-type]
    with pytest.raises(GatewayError, match="its own base"):
        check_base(record("b:latest", "b"), {})


def test_the_record_of_a_model_names_its_family_and_that_of_its_custom_models() -> None:
    listed = {"b": (Candidate(make_model("b"), FakeSource("one", [])),)}
    base = replace(record("b", None), meta={"family": "gpt-5.2", "provider_rules": {"drop": ["seed"]}})
    own = replace(record("d", "b"), meta={"family": "o3"})
    merged = add_custom_models(listed, [own, record("c", "b"), base])  # type: ignore[arg-type]
    assert {name: found[0].model.family for name, found in merged.items()} == {
        "b": "gpt-5.2",
        "c": "gpt-5.2",
        "d": "o3",
    }
    assert merged["d"][0].model.rules == {"drop": ["seed"]}


@pytest.mark.parametrize("family", [7, "x" * 257, "a\n"])
def test_a_family_is_a_short_line(family: object) -> None:
    named = replace(record("b", None), meta={"family": family})
    with pytest.raises(GatewayError) as raised:
        check_family(named)
    assert raised.value.param == "meta.family"

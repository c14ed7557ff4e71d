"""Tests for gatewayd.catalog.custom_models."""

import pytest

from gatewayd.catalog.custom_models import add_custom_models, check_base
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

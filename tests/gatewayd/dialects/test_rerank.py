"""Tests for gatewayd.dialects.rerank."""

from typing import Any

import pytest

from gatewayd.dialects.rerank import MAX_DOCUMENTS, parse_request, render
from gatewayd.errors import GatewayError

BASE = {"model": "m", "query": "q", "documents": ["a", "b", "c"]}
SCORES = {
    "results": [{"index": index, "relevance_score": score} for index, score in enumerate((0.1, 0.9, 0.5))]
}


def test_texts_go_to_the_source_and_objects_come_back() -> None:
    documents = ["a", {"text": "b", "id": 7}, {"title": "c", "text": "d"}]
    asked = parse_request({**BASE, "documents": documents, "return_documents": True, "top_n": 2, "odd": 1})
    assert asked.body == {"model": "m", "query": "q", "documents": ["a", "b", "d"], "top_n": 2, "odd": 1}
    assert render({**SCORES, "meta": {"a": 1}}, asked, "id") == {
        "id": "id",
        "model": "m",
        "meta": {"a": 1},
        "results": [
            {"index": 1, "relevance_score": 0.9, "document": {"text": "b", "id": 7}},
            {"index": 2, "relevance_score": 0.5, "document": {"title": "c", "text": "d"}},
        ],
    }
    fields = parse_request({**BASE, "documents": documents[2:], "rank_fields": ["title", "text"]})
    assert fields.body["documents"] == ["c\nd"]


def test_results_are_sorted_and_the_id_of_the_source_stays() -> None:
    results = [{"index": index, "relevance_score": 0.5} for index in (2, 0, 1)]
    made = render({"id": "own", "results": results}, parse_request(BASE), "other")
    assert (made["id"], [item["index"] for item in made["results"]]) == ("own", [0, 1, 2])


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"model": None}, "model"),
        ({"query": ""}, "query"),
        ({"query": ["a"]}, "query"),
        ({"documents": []}, "documents"),
        ({"documents": "a"}, "documents"),
        ({"documents": ["a", 5]}, "documents[1]"),
        ({"documents": [{"title": "a"}]}, "documents[0]"),
        ({"documents": [["a"]]}, "documents[0]"),
        ({"documents": ["a"] * (MAX_DOCUMENTS + 1)}, "documents"),
        ({"top_n": 0}, "top_n"),
        ({"top_n": True}, "top_n"),
        ({"return_documents": "yes"}, "return_documents"),
        ({"rank_fields": []}, "rank_fields"),
        ({"rank_fields": [1]}, "rank_fields"),
    ],
)
def test_a_bad_field_is_named(changes: dict[str, Any], param: str) -> None:
    with pytest.raises(GatewayError) as refused:
        parse_request({**BASE, **changes})
    assert refused.value.param == param

"""Tests for gatewayd.knowledge.serializers."""

from gatewayd.catalog.records import Grant
from gatewayd.ingest.records import EmbeddingSpace
from gatewayd.knowledge.records import Collection, Passage, StoredPassage
from gatewayd.knowledge.retrieval import RetrievalResult
from gatewayd.knowledge.serializers import render_collection, render_search_result


def test_collections() -> None:
    collection = Collection("c1", "u1", "C", "d", grants=(Grant("user", "*", "read"),), updated_at=2)
    assert render_collection(collection) == {
        "id": "c1",
        "user_id": "u1",
        "name": "C",
        "description": "d",
        "meta": None,
        "access_grants": [
            {
                "principal_type": "user",
                "principal_id": "*",
                "permission": "read",
                "resource_type": "knowledge",
                "resource_id": "c1",
            }
        ],
        "created_at": 0,
        "updated_at": 2,
    }


def test_found() -> None:
    stored = StoredPassage(7, "f1", 0, "text", 100, page=2, heading="Top")
    passage = Passage(stored, "a.txt", "hash", "u1", 0.9)
    shown = render_search_result(
        RetrievalResult([passage], space=EmbeddingSpace("builtin:minilm:q8f-1", 384))
    )
    assert shown == {
        "ids": [["7"]],
        "documents": [["text"]],
        "metadatas": [
            [
                {
                    "file_id": "f1",
                    "name": "a.txt",
                    "source": "a.txt",
                    "hash": "hash",
                    "created_by": "u1",
                    "start_index": 100,
                    "page": 1,
                    "page_label": "2",
                    "heading": "Top",
                    "score": 0.9,
                    "embedding_config": {"engine": "builtin", "model": "minilm:q8f-1"},
                }
            ]
        ],
        "distances": [[0.9]],
    }
    assert render_search_result(RetrievalResult([], ["cannot"])) == {
        "ids": [[]],
        "documents": [[]],
        "metadatas": [[]],
        "distances": [[]],
        "warnings": ["cannot"],
    }

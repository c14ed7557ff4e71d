"""Serializers of collections and search results, with the keys that clients of Open WebUI expect."""

from typing import Any

from gatewayd.catalog.access_grants import render_grant
from gatewayd.catalog.records import Grant
from gatewayd.knowledge.citations import render_passage
from gatewayd.knowledge.records import Collection
from gatewayd.knowledge.retrieval import RetrievalResult

JsonObject = dict[str, Any]


def render_collection(collection: Collection) -> JsonObject:
    """Return the JSON of a collection without its files."""
    return {
        "id": collection.id,
        "user_id": collection.user_id,
        "name": collection.name,
        "description": collection.description,
        "meta": dict(collection.meta) or None,
        "access_grants": [_render_grant(grant, collection.id) for grant in collection.grants],
        "created_at": collection.created_at,
        "updated_at": collection.updated_at,
    }


def render_search_result(found: RetrievalResult) -> JsonObject:
    """Return the JSON of a search result: each value is a list that contains one list, best passage first.

    `warnings` is present only when a step failed.
    """
    passages = found.passages
    result: JsonObject = {
        "ids": [[str(each.stored.id) for each in passages]],
        "documents": [[each.stored.text for each in passages]],
        "metadatas": [[render_passage(each, found.space) for each in passages]],
        "distances": [[each.score for each in passages]],
    }
    if found.warnings:
        result["warnings"] = list(found.warnings)
    return result


def render_explanation(found: RetrievalResult) -> JsonObject:
    """Return the JSON of a search result with the scores and ranks of each passage, best first."""
    return {
        "passages": [
            {
                "id": str(each.stored.id),
                "text": each.stored.text,
                "file_id": each.stored.file_id,
                "file": each.file_name,
                "path": each.path,
                "page": each.stored.page,
                "heading": each.stored.heading,
                "start": each.stored.start,
                "score": each.score,
                "similarity": each.similarity,
                "dense": each.dense,
                "dense_rank": each.dense_rank,
                "lexical": each.lexical,
                "lexical_rank": each.lexical_rank,
            }
            for each in found.passages
        ],
        "warnings": list(found.warnings),
    }


def _render_grant(grant: Grant, collection_id: str) -> JsonObject:
    return {**render_grant(grant), "resource_type": "knowledge", "resource_id": collection_id}

"""Tests for gatewayd.http.public.knowledge.retrieval."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.public.knowledge.retrieval import QueryDocBody
from gatewayd.knowledge.retrieval import SearchOptions
from tests.fakes.documents.site import KNOWLEDGE, RETRIEVAL, DocumentsSite, serving_documents
from tests.fakes.http.public_app import bearer

HERON, OWL = "The heron stands in the water.", "The owl sits in the barn."


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[DocumentsSite]:
    async with serving_documents(tmp_path) as made:
        yield made


async def filled(site: DocumentsSite, *texts: str, who: Any = None) -> str:
    made = await site.collection(who)
    for text in texts:
        file = await site.processed(text.encode(), who)
        path = f"{KNOWLEDGE}/{made['id']}/file/add"
        await site.ok("POST", path, who, {"file_id": file["id"]})
    return str(made["id"])


async def search(site: DocumentsSite, names: list[str], query: str, **more: Any) -> Any:
    body = {"collection_names": names, "query": query, **more}
    return await site.ok("POST", f"{RETRIEVAL}/query/collection", body=body)


async def test_the_best_comes_first(site: DocumentsSite) -> None:
    name = await filled(site, HERON, OWL)
    found = await search(site, [name], "where does the owl sit")
    assert found["documents"][0][0] == OWL
    assert found["distances"][0] == sorted(found["distances"][0], reverse=True)
    lengths = {key: [len(each) for each in found[key]] for key in found}
    assert lengths == {key: [2] for key in ("ids", "documents", "metadatas", "distances")}
    assert found["metadatas"][0][0]["name"] == "a.txt"


async def test_one_file(site: DocumentsSite) -> None:
    file = await site.processed(HERON.encode())
    body = {"collection_name": f"file-{file['id']}", "query": "heron", "k": 1, "hybrid": False}
    found = await site.ok("POST", f"{RETRIEVAL}/query/doc", body=body)
    assert found["documents"] == [[HERON]]
    assert found["metadatas"][0][0]["file_id"] == file["id"]


async def test_several_collections_are_searched_together(site: DocumentsSite) -> None:
    names = [await filled(site, HERON), await filled(site, OWL), await filled(site, HERON)]
    found = await search(site, names, "heron owl", k=10)
    assert sorted(found["documents"][0]) == [HERON, OWL]
    assert len((await search(site, names, "heron owl", k=1))["documents"][0]) == 1
    assert (await search(site, [], "heron"))["documents"] == [[]]


async def test_the_threshold(site: DocumentsSite) -> None:
    name = await filled(site, HERON, OWL)
    assert (await search(site, [name], HERON, r=0.99))["documents"] == [[HERON]]


async def test_without_a_model_words_decide_and_the_caller_is_told(site: DocumentsSite) -> None:
    name = await filled(site, HERON, OWL)
    site.services.embedder.failures.append(GatewayError(ErrorKind.UPSTREAM_UNREACHABLE, "cannot reach it"))
    path, headers = f"{RETRIEVAL}/query/collection", bearer(await site.services.accounts.session(site.user))
    body = {"collection_names": [name], "query": "owl"}
    async with site.site.client.post(path, json=body, headers=headers) as reply:
        found = await reply.json()
        assert found["documents"] == [[OWL]]
        assert "cannot reach it" in found["warnings"][0]
        assert "cannot reach it" in reply.headers["X-Gateway-Warning"]


async def test_an_explained_search(site: DocumentsSite) -> None:
    name = await filled(site, HERON, OWL)
    body = {"collection_names": [name], "query": "where does the owl sit"}
    found = await site.ok("POST", f"{RETRIEVAL}/query/explain", body=body)
    plain = await search(site, [name], body["query"])
    assert [each["text"] for each in found["passages"]] == plain["documents"][0]
    assert [each["score"] for each in found["passages"]] == plain["distances"][0]
    first, second = found["passages"]
    assert (first["text"], first["file"], first["lexical_rank"], first["start"]) == (OWL, "a.txt", 1, 0)
    assert {first["dense_rank"], second["dense_rank"]} == {1, 2}
    assert found["warnings"] == []


@pytest.mark.parametrize("path", ["query/collection", "query/explain"])
async def test_who_may_search(site: DocumentsSite, path: str) -> None:
    theirs = await filled(site, HERON, who=site.other)
    file = (await site.processed(OWL.encode(), site.other))["id"]
    mine = await filled(site, HERON)
    for names in ([theirs], [mine, theirs], [f"file-{file}"], ["nothing"], ["file-nothing"]):
        body = {"collection_names": names, "query": "heron"}
        assert (await site.call("POST", f"{RETRIEVAL}/{path}", site.user, body))[0] == 404
        assert (await site.call("POST", f"{RETRIEVAL}/{path}", site.admin, body))[0] in {200, 404}


async def test_an_unfinished_file(site: DocumentsSite) -> None:
    file = await site.upload(b"x", query="?process=false")
    body = {"collection_name": f"file-{file['id']}", "query": "x"}
    status, answer = await site.call("POST", f"{RETRIEVAL}/query/doc", site.user, body)
    assert (status, "empty" in answer["detail"]) == (400, True)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"k": 0}, "k"),
        ({"k": 100_000}, "k"),
        ({"r": 2}, "r"),
        ({"hybrid": "perhaps"}, "hybrid"),
        ({"hybrid_bm25_weight": -1}, "hybrid_bm25_weight"),
        ({"collection_names": ["../x"]}, "collection_names"),
        ({"collection_names": "x"}, "collection_names"),
        ({"collection_names": ["x"] * 1001}, "collection_names"),
        ({"query": None}, "query"),
        ({"query": "x" * 100_001}, "query"),
    ],
)
async def test_bad_searches(site: DocumentsSite, wrong: Any, named: str) -> None:
    body = {"collection_names": [], "query": "x", **wrong}
    status, answer = await site.call("POST", f"{RETRIEVAL}/query/collection", site.user, body)
    assert (status, answer["detail"][0]["loc"][1]) == (422, named)


def test_options() -> None:
    configured = SearchOptions(k=7, threshold=0.5)
    asked = QueryDocBody(query="q", collection_name="c", k=3, hybrid_bm25_weight=0.0, r=0.0)
    assert asked.options(configured) == SearchOptions(k=3, threshold=0.0, weight=0.0)
    assert QueryDocBody(query="q", collection_name="c", hybrid=None).options(configured) == configured

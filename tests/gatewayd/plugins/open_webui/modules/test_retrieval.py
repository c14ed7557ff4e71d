from typing import Any

import pytest

from gatewayd.plugins.interfaces import HostUpload, PluginHost
from gatewayd.plugins.open_webui.finder import InstalledModules
from gatewayd.plugins.open_webui.placeholders import NotProvidedError
from tests.fakes.plugins.plugin_threads import at_home, in_thread, load_at_home

USER = {"id": "ada"}


@pytest.fixture
async def module(installed: InstalledModules, host: PluginHost) -> Any:
    await host.files.store("ada", HostUpload("a.txt", b"alpha"))
    return (
        await load_at_home(
            "from open_webui.models.knowledge import Knowledges\nfrom open_webui.routers import retrieval\n"
        )
    )[0]


async def test_collections(module: Any) -> None:
    found = await in_thread(module.Knowledges.get_knowledge_by_id, "k1")
    assert (found.id, found.name) == ("k1", "Timetables")
    assert await in_thread(module.Knowledges.get_knowledge_by_id, "k9") is None
    listed = await in_thread(module.Knowledges.get_knowledge_bases_by_user_id, "ada")
    assert [k.id for k in await listed] == ["k1"]
    assert await in_thread(module.Knowledges.get_knowledge_bases_by_user_id, "bob", "read") == []


async def test_a_file_is_processed(module: Any, host: PluginHost) -> None:
    form = module.retrieval.ProcessFileForm

    async def plugin() -> tuple[Any, Any]:
        process = module.retrieval.process_file
        with pytest.raises(ValueError, match="cannot find file 'f9'"):
            await process(None, form(file_id="f9"), user=USER)
        for role in ("user", "admin"):
            with pytest.raises(ValueError, match="cannot find file 'f1'"):
                await process(None, form(file_id="f1", content="mine"), user={"id": "bob", "role": role})
        alone = await process(None, form(file_id="f1"), user=USER)
        into = await process(None, form(file_id="f1", collection_name="k1", content="given"), user=USER)
        return alone, into

    alone, into = await at_home(plugin)
    assert alone == {
        "status": True,
        "collection_name": "file-f1",
        "filename": "a.txt",
        "content": "read text",
    }
    plain = await in_thread(lambda: module.retrieval.process_file(None, form(file_id="f1"), user=USER))
    assert plain == alone
    assert into["collection_name"] == "k1"
    assert host.files.processed == [("f1", None), ("f1", "k1"), ("f1", None)]  # type: ignore[attr-defined]


async def test_searches(module: Any) -> None:
    retrieval = module.retrieval

    async def plugin() -> tuple[Any, Any]:
        several = retrieval.QueryCollectionsForm(collection_names=["k1", "k2"], query="train", k=3)
        one = retrieval.QueryDocForm(collection_name="k1", query="train")
        return (
            await retrieval.query_collection_handler(None, several, user=USER),
            await retrieval.query_doc_handler(None, one, user=USER),
        )

    several, one = await at_home(plugin)
    assert several["documents"] == [["train 1", "train 2", "train 1"]]
    assert several["metadatas"] == [[{"name": "k1"}, {"name": "k1"}, {"name": "k2"}]]
    assert several["distances"] == [[1.0, 0.5, 1.0]]
    assert one["documents"] == [["train 1", "train 2"]]


async def test_the_web_is_not_searched(module: Any) -> None:
    form = module.retrieval.SearchForm(query="x")
    for name in ("process_web_search", "search_web"):
        with pytest.raises(NotProvidedError, match=f"retrieval.{name} is not provided"):
            await getattr(module.retrieval, name)(None, form, user=USER)

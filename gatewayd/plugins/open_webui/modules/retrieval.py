"""Implementation of `open_webui.models.knowledge` and `open_webui.routers.retrieval`."""

from typing import Any

from pydantic import Field

from gatewayd.plugins.interfaces import Record
from gatewayd.plugins.open_webui.awaitable_records import AnswerDict, AnswerList, AnswerRecord
from gatewayd.plugins.open_webui.host_bridge import HostBridge, HostTable, blocking
from gatewayd.plugins.open_webui.modules.files import find_file_for
from gatewayd.plugins.open_webui.modules.users import id_of
from gatewayd.plugins.open_webui.placeholders import raise_not_provided

NAME = "open_webui.routers.retrieval"


class KnowledgeModel(AnswerRecord):
    """A collection."""

    id: str
    user_id: str = ""
    name: str = ""
    description: str = ""
    meta: dict[str, Any] | None = None
    created_at: int = 0
    updated_at: int = 0


class ProcessFileForm(AnswerRecord):
    """A file to extract and embed."""

    file_id: str
    content: str | None = None
    collection_name: str | None = None


class QueryDocForm(AnswerRecord):
    """A search in one collection."""

    collection_name: str
    query: str
    k: int | None = None


class QueryCollectionsForm(AnswerRecord):
    """A search in several collections."""

    collection_names: list[str]
    query: str
    k: int | None = None


class SearchForm(AnswerRecord):
    """A web search."""

    query: str = ""
    queries: list[str] = Field(default_factory=list)
    collection_name: str | None = ""


class KnowledgeTable(HostTable):
    """The class of `Knowledges`."""

    @blocking
    async def get_knowledge_by_id(self, id: str) -> KnowledgeModel | None:
        """Return a collection; None when absent."""
        return KnowledgeModel.of(await self._host.knowledge.find(id))

    @blocking
    async def get_knowledge_bases_by_user_id(
        self, user_id: str, permission: str = "write"
    ) -> AnswerList[KnowledgeModel]:
        """Return the collections that a user may read."""
        del permission
        return KnowledgeModel.each(await self._host.knowledge.list(user_id))


class RetrievalFunctions:
    """The functions of `open_webui.routers.retrieval`."""

    def __init__(self, bridge: HostBridge) -> None:
        self._bridge = bridge

    @blocking
    async def process_file(
        self, request: Any, form_data: ProcessFileForm, user: Any = None, **_: Any
    ) -> AnswerDict[str, Any]:
        """Extract and embed a file, optionally into a collection, and wait for the end.

        Raises ValueError when the file is absent or the user may not read it. Without a user access to the
        file is not checked.
        """
        del request
        if user is not None and await find_file_for(self._bridge.host, form_data.file_id, user) is None:
            raise ValueError(f"cannot find file {form_data.file_id!r}")
        if form_data.content is not None:
            text = {"content": form_data.content}
            await self._bridge.host.files.set_data(form_data.file_id, text)
        file = await self._bridge.host.files.process(form_data.file_id, form_data.collection_name)
        if file is None:
            raise ValueError(f"cannot find file {form_data.file_id!r}")
        return AnswerDict(
            status=True,
            collection_name=form_data.collection_name or f"file-{form_data.file_id}",
            filename=file.get("filename"),
            content=(file.get("data") or {}).get("content"),
        )

    async def query_collection_handler(
        self, request: Any, form_data: QueryCollectionsForm, user: Any = None, **_: Any
    ) -> AnswerDict[str, Any]:
        """Return the passages for a query as `{"documents", "metadatas", "distances"}`, best first.

        Each is a list with one list of values; a distance is a score here, higher is better.
        """
        del request
        names = list(form_data.collection_names)
        return await self._search(id_of(user), names, form_data.query, form_data.k)

    async def query_doc_handler(
        self, request: Any, form_data: QueryDocForm, user: Any = None, **_: Any
    ) -> AnswerDict[str, Any]:
        """Return the passages of one collection, in the format of `query_collection_handler`."""
        del request
        return await self._search(id_of(user), [form_data.collection_name], form_data.query, form_data.k)

    async def _search(
        self, user_id: str, names: list[str], query: str, k: int | None
    ) -> AnswerDict[str, Any]:
        found = await self._bridge.reach(self._bridge.host.knowledge.search, user_id, names, query, k)
        return AnswerDict(
            documents=[[_text(passage) for passage in found]],
            metadatas=[[dict(passage.get("metadata") or {}) for passage in found]],
            distances=[[passage.get("score") for passage in found]],
        )


def _text(passage: Record) -> str:
    return str(passage.get("text") or passage.get("content") or "")


async def process_web_search(*_: Any, **__: Any) -> Any:
    """Raise NotProvidedError: there is no web search."""
    raise_not_provided(f"{NAME}.process_web_search")


async def search_web(*_: Any, **__: Any) -> Any:
    """Raise NotProvidedError: there is no web search."""
    raise_not_provided(f"{NAME}.search_web")


def make_knowledge(bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.models.knowledge`."""
    table = KnowledgeTable(bridge, "open_webui.models.knowledge.Knowledges")
    return {"Knowledges": table, "KnowledgeModel": KnowledgeModel}


def make_retrieval(bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.routers.retrieval`."""
    retrieval = RetrievalFunctions(bridge)
    return {
        "process_file": retrieval.process_file,
        "query_collection_handler": retrieval.query_collection_handler,
        "query_doc_handler": retrieval.query_doc_handler,
        "process_web_search": process_web_search,
        "search_web": search_web,
        "ProcessFileForm": ProcessFileForm,
        "QueryCollectionsForm": QueryCollectionsForm,
        "QueryDocForm": QueryDocForm,
        "SearchForm": SearchForm,
    }

"""Turns file references of a chat request into context (gatewayd-documents(7), CHAT REQUESTS)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from gatewayd.accounts.records import Actor
from gatewayd.errors import ErrorKind, GatewayError, shorten
from gatewayd.ingest.files import FileService
from gatewayd.ingest.records import ScopeKind, SearchScope
from gatewayd.knowledge.citations import (
    Source,
    make_full_text_source,
    make_passages_source,
    render_context,
    render_template,
    with_distinct_sources,
)
from gatewayd.knowledge.collections import CollectionService
from gatewayd.knowledge.full_text import CharacterBudget, FullTextReader, TextWithMetadata
from gatewayd.knowledge.passage_selection import normalise_whitespace
from gatewayd.knowledge.retrieval import RetrievalService, SearchOptions, SearchQuery
from gatewayd.knowledge.scopes import ScopeResolver, unfinished_reason
from gatewayd.metering.service_calls import paid_by
from gatewayd.pipeline.documents.prompt_context import append_to_system, last_question, prepend_to_question
from gatewayd.pipeline.records import ChatRequest
from gatewayd.time_slices import LoopPacer

MAX_REFERENCES: Final = 100
TEXT: Final = "text"
FULL: Final = "full"

# Errors that make a reference unusable but do not fail the request.
REFERENCE_ERROR_KINDS: Final = frozenset(
    {ErrorKind.NOT_FOUND, ErrorKind.FORBIDDEN, ErrorKind.EMPTY_CONTENT, ErrorKind.INVALID_REQUEST}
)

UNREADABLE_KINDS: Final = frozenset({ErrorKind.NOT_FOUND, ErrorKind.FORBIDDEN})
NOT_FOR_CALLER: Final = "cannot use a document of the model: it is not there, or not for the caller"

DocumentReference = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AttachmentOptions:
    """Settings for the conversion of references to context.

    With `full_context` whole documents are used, up to `full_context_limit` characters in all. With
    `system_context` the context goes to the system message. An empty `template` means the built-in one.
    """

    search: SearchOptions = field(default_factory=SearchOptions)
    full_context: bool = False
    full_context_limit: int = 200_000
    system_context: bool = False
    template: str = ""


@dataclass(frozen=True, slots=True)
class ReferenceServices:
    """Services that look up references."""

    files: FileService
    collections: CollectionService
    scopes: ScopeResolver
    retrieval: RetrievalService
    full_text: FullTextReader


class DocumentAttachments:
    """The `pipeline.interfaces.Attachments` of the gateway: files, collections, texts and inline documents.

    `options` may be replaced; a running request keeps the old ones.
    """

    def __init__(self, documents: ReferenceServices, options: AttachmentOptions) -> None:
        self._documents = documents
        self.options = options

    async def attach(self, request: ChatRequest, actor: Actor, found: Sequence[Source] = ()) -> list[Source]:
        """Add the context for the last question to the messages and return the sources.

        Sources in `found` come first. An unusable reference adds a warning to `request.warnings`.
        """
        options = self.options
        messages = request.body.get("messages")
        query = last_question(messages) if isinstance(messages, list) else ""
        if not query.strip():
            if request.files:
                request.warnings.append("cannot use the files of this request: no user message has a text")
            return list(found)
        budget = CharacterBudget(options.full_context_limit, request.warnings)
        record_references = () if actor.is_admin else request.model_files
        resolver = _ReferenceResolver(self._documents, options, actor, query, budget, record_references)
        sources = with_distinct_sources([*found, *await resolver.sources(await _distinct(request))])
        if sources:
            text = render_template(options.template, render_context(sources), query)
            insert = append_to_system if options.system_context else prepend_to_question
            request.body["messages"] = insert(request.body["messages"], text)
        return sources


@dataclass(slots=True)
class _ReferenceResolver:
    """The references of one request; each becomes a source or a warning.

    References in `of_model` come from the model's record, which the caller may not read; no warning names
    them.
    """

    documents: ReferenceServices
    options: AttachmentOptions
    actor: Actor
    query: str
    budget: CharacterBudget
    record_references: Sequence[DocumentReference] = ()
    question: SearchQuery | None = None
    seen: set[str] = field(default_factory=set)

    async def sources(self, references: Sequence[DocumentReference]) -> list[Source]:
        """Return the sources, in order of the references; each passage counts for the first that has it."""
        sources = []
        for reference in references:
            try:
                source = await self._source(reference)
            except GatewayError as error:
                if error.kind not in REFERENCE_ERROR_KINDS:
                    raise
                if error.kind in UNREADABLE_KINDS:
                    self._warn_unread(reference, _label(reference), error.message)
                else:
                    self._warn(_label(reference), error.message)
                continue
            if source is not None:
                sources.append(source)
        return sources

    async def _source(self, reference: DocumentReference) -> Source | None:
        if isinstance(reference.get("docs"), list):
            return self._docs(reference, reference["docs"])
        match reference.get("type"):
            case "file":
                return await self._file(reference)
            case "collection":
                return await self._collection(reference)
            case "text":
                return await self._text(reference)
            case _:
                known = "this gateway knows references of the types file, collection and text"
                self._warn_unread(reference, _label(reference), known)
                return None

    async def _file(self, reference: DocumentReference) -> Source | None:
        file = await self.documents.files.get(self.actor, _id(reference))
        problem = unfinished_reason(file)
        if problem:
            self._warn(_label(reference), problem)
            return None
        named = {**reference, "name": _name(reference) or file.name}
        if self._wants_full_text(reference):
            return self._full_text_source(named, await self.documents.full_text.file(file, self.budget))
        return await self._search(named, [SearchScope(ScopeKind.FILE, file.id)])

    async def _collection(self, reference: DocumentReference) -> Source | None:
        names = reference.get("collection_names")
        if reference.get("legacy") and isinstance(names, list):
            return await self._search(reference, await self._scopes(reference, names))
        collection = await self.documents.collections.get(self.actor, _id(reference))
        if not await self.documents.collections.has_files(collection):
            self._warn(_label(reference), "it has no completed files")
            return None
        named = {**reference, "name": _name(reference) or collection.name}
        if self._wants_full_text(reference):
            return self._full_text_source(
                named, await self.documents.full_text.collection(collection, self.budget)
            )
        return await self._search(named, [SearchScope(ScopeKind.COLLECTION, collection.id)])

    async def _text(self, reference: DocumentReference) -> Source | None:
        inner = reference.get("file")
        data = inner.get("data") if isinstance(inner, Mapping) else None
        content = reference.get("content") or (data.get("content") if isinstance(data, Mapping) else None)
        name = _name(reference) or TEXT
        if isinstance(content, str) and content.strip():
            metadata = {"file_id": None, "name": name, "source": name}
            taken = self.budget.take(content, f"text {name!r}")
            return self._full_text_source({**reference, "name": name}, [(metadata, taken)] if taken else [])
        if isinstance(reference.get("collection_name"), str):
            return await self._search(
                reference, await self._scopes(reference, [reference["collection_name"]])
            )
        self._warn(_label(reference), "it has no content")
        return None

    def _docs(self, reference: DocumentReference, docs: Sequence[Any]) -> Source | None:
        name = _name(reference) or "documents"
        texts: list[TextWithMetadata] = []
        for doc in docs:
            content = doc.get("content") if isinstance(doc, Mapping) else None
            if isinstance(content, str) and content.strip():
                metadata = doc.get("metadata")
                taken = self.budget.take(content, name)
                texts.append((metadata if isinstance(metadata, Mapping) else {}, taken))
        return self._full_text_source({**reference, "name": name}, [each for each in texts if each[1]])

    async def _scopes(self, reference: DocumentReference, names: Sequence[Any]) -> list[SearchScope]:
        """Return the scopes of collection names; an unusable name adds a warning."""
        scopes = []
        for name in names[:MAX_REFERENCES]:
            try:
                scopes.append(await self.documents.scopes.named(self.actor, str(name)))
            except GatewayError as error:
                if error.kind not in REFERENCE_ERROR_KINDS:
                    raise
                self._warn_unread(reference, f"collection {shorten(str(name))!r}", error.message)
        return scopes

    async def _search(self, reference: DocumentReference, scopes: Sequence[SearchScope]) -> Source | None:
        if not scopes:
            return None
        retrieval = self.documents.retrieval
        with paid_by(self.actor):
            if self.question is None:
                self.question = await retrieval.question(self.query, self.options.search)
            found = await retrieval.search(scopes, self.question, self.options.search)
        for sentence in found.warnings:
            if sentence not in self.budget.warnings:
                self.budget.warnings.append(sentence)
        if not found.passages:
            self._warn(_label(reference), "nothing in it answers the question")
            return None
        new = [each for each in found.passages if self._is_new(each.stored.text)]
        return make_passages_source(reference, new, found.space) if new else None

    def _full_text_source(
        self, reference: DocumentReference, texts: Sequence[TextWithMetadata]
    ) -> Source | None:
        if not texts:
            if self.budget.left:
                self._warn(_label(reference), "it has no text")
            return None
        new = [(metadata, text) for metadata, text in texts if self._is_new(text)]
        return make_full_text_source(reference, new) if new else None

    def _is_new(self, text: str) -> bool:
        words = normalise_whitespace(text)
        if words in self.seen:
            return False
        self.seen.add(words)
        return True

    def _wants_full_text(self, reference: DocumentReference) -> bool:
        return self.options.full_context or reference.get("context") == FULL

    def _warn_unread(self, reference: DocumentReference, what: str, reason: str) -> None:
        """Warn about a reference that the caller may not read, without its name if the record added it."""
        if reference not in self.record_references:
            self._warn(what, reason)
        elif NOT_FOR_CALLER not in self.budget.warnings:
            self.budget.warnings.append(NOT_FOR_CALLER)

    def _warn(self, what: str, reason: str) -> None:
        self.budget.warnings.append(f"cannot use {what}: {reason}")


async def _distinct(request: ChatRequest) -> list[DocumentReference]:
    """Return the references without exact duplicates; too many are truncated with a warning."""
    distinct: dict[bytes, DocumentReference] = {}
    pace = LoopPacer()
    for reference in request.files:
        await pace.turn()
        try:
            # Nested as deep as in the reply.
            encoded = orjson.dumps([[[[[[reference]]]]]], option=orjson.OPT_SORT_KEYS)
        except orjson.JSONEncodeError:
            request.warnings.append(
                f"cannot use {_label(reference)}: it is not plain JSON, or nests too deep"
            )
            continue
        if encoded not in distinct and len(distinct) == MAX_REFERENCES:
            request.warnings.append(f"cannot use all files: at most {MAX_REFERENCES} are allowed")
            break
        distinct.setdefault(encoded, reference)
    return list(distinct.values())


def _id(reference: DocumentReference) -> str:
    value = reference.get("id")
    return value if isinstance(value, str) else ""


def _name(reference: DocumentReference) -> str:
    value = reference.get("name")
    return value if isinstance(value, str) else ""


def _label(reference: DocumentReference) -> str:
    """Return the name of a reference for a warning."""
    kind = reference.get("type")
    what = shorten(kind) if isinstance(kind, str) else "documents"
    named = _id(reference) or _name(reference)
    return f"{what} {shorten(named)!r}" if named else what

"""Turns the references of a chat request into context and sources (2.3)."""

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
from gatewayd.pipeline.documents.prompt_context import append_to_system, last_question, prepend_to_question
from gatewayd.pipeline.records import ChatRequest
from gatewayd.time_slices import LoopPacer

MAX_REFERENCES: Final = 100
TEXT: Final = "text"
FULL: Final = "full"

# What makes a reference unusable, and no reason to fail the request.
REFERENCE_ERROR_KINDS: Final = frozenset(
    {ErrorKind.NOT_FOUND, ErrorKind.FORBIDDEN, ErrorKind.EMPTY_CONTENT, ErrorKind.INVALID_REQUEST}
)

UNREADABLE_KINDS: Final = frozenset({ErrorKind.NOT_FOUND, ErrorKind.FORBIDDEN})
NOT_FOR_CALLER: Final = "cannot use a document of the model: it is not there, or not for the caller"

DocumentReference = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AttachmentOptions:
    """How references become context.

    With `full_context` documents are given whole, `full_context_limit` characters of all together; with
    `system_context` the context goes to the system message; an empty `template` is the built-in one.
    """

    search: SearchOptions = field(default_factory=SearchOptions)
    full_context: bool = False
    full_context_limit: int = 200_000
    system_context: bool = False
    template: str = ""


@dataclass(frozen=True, slots=True)
class ReferenceServices:
    """Where references are looked up."""

    files: FileService
    collections: CollectionService
    scopes: ScopeResolver
    retrieval: RetrievalService
    wholes: FullTextReader


class DocumentAttachments:
    """A `chat.interfaces.Attachments` for files, collections, texts and documents of the caller's own.

    `options` may be exchanged; requests that have begun keep theirs.
    """

    def __init__(self, documents: ReferenceServices, options: AttachmentOptions) -> None:
        self._documents = documents
        self.options = options

    async def attach(self, request: ChatRequest, actor: Actor, found: Sequence[Source] = ()) -> list[Source]:
        """Put what the references say about the last question into the messages; return the sources.

        What was `found` elsewhere stands before it. What cannot be used adds a sentence to
        `request.warnings`.
        """
        options = self.options
        messages = request.body.get("messages")
        query = last_question(messages) if isinstance(messages, list) else ""
        if not query.strip():
            if request.files:
                request.warnings.append("cannot use the files of this request: no user message has a text")
            return list(found)
        allowance = CharacterBudget(options.full_context_limit, request.warnings)
        of_model = () if actor.is_admin else request.model_files
        work = _Attaching(self._documents, options, actor, query, allowance, of_model)
        sources = with_distinct_sources([*found, *await work.sources(await _distinct(request))])
        if sources:
            text = render_template(options.template, render_context(sources), query)
            place = append_to_system if options.system_context else prepend_to_question
            request.body["messages"] = place(request.body["messages"], text)
        return sources


@dataclass(slots=True)
class _Attaching:
    """One request: every reference becomes a source or a warning.

    Those `of_model` are in its record, which the caller may not read: a warning does not name them.
    """

    documents: ReferenceServices
    options: AttachmentOptions
    actor: Actor
    query: str
    allowance: CharacterBudget
    of_model: Sequence[DocumentReference] = ()
    question: SearchQuery | None = None
    seen: set[str] = field(default_factory=set)

    async def sources(self, references: Sequence[DocumentReference]) -> list[Source]:
        """Return the sources, in the order of the references, each passage in the first that has it."""
        sources = []
        for reference in references:
            try:
                source = await self._source(reference)
            except GatewayError as error:
                if error.kind not in REFERENCE_ERROR_KINDS:
                    raise
                if error.kind in UNREADABLE_KINDS:
                    self._warn_unread(reference, _told(reference), error.message)
                else:
                    self._warn(_told(reference), error.message)
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
                self._warn_unread(reference, _told(reference), known)
                return None

    async def _file(self, reference: DocumentReference) -> Source | None:
        file = await self.documents.files.get(self.actor, _id(reference))
        problem = unfinished_reason(file)
        if problem:
            self._warn(_told(reference), problem)
            return None
        named = {**reference, "name": _name(reference) or file.name}
        if self._is_whole(reference):
            return self._whole(named, await self.documents.wholes.file(file, self.allowance))
        return await self._search(named, [SearchScope(ScopeKind.FILE, file.id)])

    async def _collection(self, reference: DocumentReference) -> Source | None:
        names = reference.get("collection_names")
        if reference.get("legacy") and isinstance(names, list):
            return await self._search(reference, await self._scopes(reference, names))
        collection = await self.documents.collections.get(self.actor, _id(reference))
        if not await self.documents.collections.has_files(collection):
            self._warn(_told(reference), "it has no completed files")
            return None
        named = {**reference, "name": _name(reference) or collection.name}
        if self._is_whole(reference):
            return self._whole(named, await self.documents.wholes.collection(collection, self.allowance))
        return await self._search(named, [SearchScope(ScopeKind.COLLECTION, collection.id)])

    async def _text(self, reference: DocumentReference) -> Source | None:
        inner = reference.get("file")
        data = inner.get("data") if isinstance(inner, Mapping) else None
        content = reference.get("content") or (data.get("content") if isinstance(data, Mapping) else None)
        name = _name(reference) or TEXT
        if isinstance(content, str) and content.strip():
            metadata = {"file_id": None, "name": name, "source": name}
            taken = self.allowance.take(content, f"text {name!r}")
            return self._whole({**reference, "name": name}, [(metadata, taken)] if taken else [])
        if isinstance(reference.get("collection_name"), str):
            return await self._search(
                reference, await self._scopes(reference, [reference["collection_name"]])
            )
        self._warn(_told(reference), "it has no content")
        return None

    def _docs(self, reference: DocumentReference, docs: Sequence[Any]) -> Source | None:
        name = _name(reference) or "documents"
        texts: list[TextWithMetadata] = []
        for doc in docs:
            content = doc.get("content") if isinstance(doc, Mapping) else None
            if isinstance(content, str) and content.strip():
                metadata = doc.get("metadata")
                taken = self.allowance.take(content, name)
                texts.append((metadata if isinstance(metadata, Mapping) else {}, taken))
        return self._whole({**reference, "name": name}, [each for each in texts if each[1]])

    async def _scopes(self, reference: DocumentReference, names: Sequence[Any]) -> list[SearchScope]:
        """Return the scopes of names; each that cannot be used is warned about."""
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
        if self.question is None:
            self.question = await retrieval.question(self.query, self.options.search)
        found = await retrieval.search(scopes, self.question, self.options.search)
        for sentence in found.warnings:
            if sentence not in self.allowance.warnings:
                self.allowance.warnings.append(sentence)
        if not found.passages:
            self._warn(_told(reference), "nothing in it answers the question")
            return None
        new = [each for each in found.passages if self._is_new(each.stored.text)]
        return make_passages_source(reference, new, found.space) if new else None

    def _whole(self, reference: DocumentReference, texts: Sequence[TextWithMetadata]) -> Source | None:
        if not texts:
            if self.allowance.left:
                self._warn(_told(reference), "it has no text")
            return None
        new = [(metadata, text) for metadata, text in texts if self._is_new(text)]
        return make_full_text_source(reference, new) if new else None

    def _is_new(self, text: str) -> bool:
        words = normalise_whitespace(text)
        if words in self.seen:
            return False
        self.seen.add(words)
        return True

    def _is_whole(self, reference: DocumentReference) -> bool:
        return self.options.full_context or reference.get("context") == FULL

    def _warn_unread(self, reference: DocumentReference, what: str, reason: str) -> None:
        """Warn about what a reference names; nobody has found that the caller may read it."""
        if reference not in self.of_model:
            self._warn(what, reason)
        elif NOT_FOR_CALLER not in self.allowance.warnings:
            self.allowance.warnings.append(NOT_FOR_CALLER)

    def _warn(self, what: str, reason: str) -> None:
        self.allowance.warnings.append(f"cannot use {what}: {reason}")


async def _distinct(request: ChatRequest) -> list[DocumentReference]:
    """Return the references, exact duplicates once; too many are cut, with a warning."""
    distinct: dict[bytes, DocumentReference] = {}
    pace = LoopPacer()
    for reference in request.files:
        await pace.turn()
        try:
            # As deep as it will stand in the reply.
            written = orjson.dumps([[[[[[reference]]]]]], option=orjson.OPT_SORT_KEYS)
        except orjson.JSONEncodeError:
            request.warnings.append(f"cannot use {_told(reference)}: it is no plain JSON, or nests too deep")
            continue
        if written not in distinct and len(distinct) == MAX_REFERENCES:
            request.warnings.append(f"cannot use all files: a request may have {MAX_REFERENCES}")
            break
        distinct.setdefault(written, reference)
    return list(distinct.values())


def _id(reference: DocumentReference) -> str:
    value = reference.get("id")
    return value if isinstance(value, str) else ""


def _name(reference: DocumentReference) -> str:
    value = reference.get("name")
    return value if isinstance(value, str) else ""


def _told(reference: DocumentReference) -> str:
    """Return how a sentence names a reference."""
    kind = reference.get("type")
    what = shorten(kind) if isinstance(kind, str) else "documents"
    named = _id(reference) or _name(reference)
    return f"{what} {shorten(named)!r}" if named else what

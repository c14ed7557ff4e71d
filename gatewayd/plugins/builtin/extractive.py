"""
description: Answers from attached files and collections with quoted sentences, without a language model.
title: Extractive answers
author: gatewayd
version: 1.1.0
license: Apache-2.0
"""

import math
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel, Field

try:
    from open_webui.routers.retrieval import (  # type: ignore[import-not-found]
        QueryCollectionsForm,
        query_collection_handler,
    )
except ImportError:
    QueryCollectionsForm = query_collection_handler = None

Emitter = Callable[[dict[str, Any]], Awaitable[None]]
Message = dict[str, Any]

MAX_WORDS: Final = 500
"""Maximum characters of a quoted sentence, and maximum words of a question that count."""

MIN_WORDS: Final = 3
"""Minimum words of a sentence; a shorter piece, such as a list number, is joined with the next."""

MIN_STEM_CHARACTERS: Final = 3
"""Minimum length of a common stem, and maximum length of the endings that may differ."""

_FUNCTION_WORDS: Final = """
about after all also am an and any are as at be because been before being between both but by can could did
do does doing down each either explain few for from further give had has have having he her here hers him
his how if in into is it its just let like many may me mean might more most much must my need no nor not of
off on once one only or other our out over own please same shall she should so some such tell than that the
their them then there these they this those through to too under until up us use used uses using very want
was way we were what when where whether which while who whom whose why will with would you your yours

aber als auch auf aus bei bin bis bist da damit das dass dein dem den der des dies diese dieser dieses doch
du durch ein eine einem einen einer eines er es für gibt haben hat ich ihr im ins ist ja kann kein keine
können man mein mich mir mit muss nach nicht noch nur ob oder ohne sein sich sie sind soll um und uns unser
viel viele vom von vor wann warum wegen welche welcher welches wenn wer werden wie wieso wir wird wo woher
wohin zu zum zur zwischen über

au aux avec avoir ce ces cet cette combien comment dans de elle elles en est et eu font il ils je la le les
leur lui ma mais mes moi mon ne nos notre nous ont ou où par pas peut plus pour pourquoi qu quand que quel
quelle quelles quels qui quoi sa sans se ses si son sont sous sur ta te toi ton tu un une vos votre vous
être

al algo alguna alguno ante aos che chi com como con cosa cual cuales cuando cuanto cuál cuándo cuánto
cuántos cómo dal dalla degli dei del della delle di donde dos dónde el ella em entre era esta estas este
esto estos está gli ha hay io las lo los mi mia mio muy na nas nel nella não os para pela pelo per perché
pero più por porque qual quale quali quando quanti quanto quem quién qué sem ser sin sobre sono su sua sue
suo sus sí también também tem ti tiene uma una uno ya yo às

aan af alle av blir deg denna det detta dig din dus een efter eller ett fra från för før geen går han har
hebben heeft het hij hoe hon hoor hur hva hvad hvem hvor hvordan hvorfor hvornår icke ikke inte jag jeg kan
maar med meg met mig mijn min mot naar niet nog nu när når och og om ook op ot paa på sig ska skal skall som
til till tot uit ut vad van var varför vem vid vilka vilken voor waar waarom wanneer wat welke worden wordt
zal zich zijn zo över
"""
"""English; German; French; Spanish, Portuguese and Italian; Dutch, Swedish, Danish and Norwegian."""

FUNCTION_WORDS: Final = frozenset(_FUNCTION_WORDS.split())
"""Words of questions without content (stop words)."""

MIN_SCORE_SHARE: Final = 0.5
"""Minimum score of a quoted sentence, as a share of the best score."""

_SOURCE: Final = re.compile(r"<source\b(?P<attributes>[^<>]*)>")
_SOURCE_END: Final = "</source>"
_ID: Final = re.compile(r'\bid="(\d{1,9})"')
_TAG: Final = re.compile(r"&lt;(?=[\s/]*(?:source|context)\b)")
_SENTENCE: Final = re.compile(r"([.!?\u2026][\"')\]\u201d\u00bb]*)\s+(?=[^\sa-z])|([\u3002\uff01\uff1f])")
_BLOCK: Final = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*#|\u2022]|\d+[.)])\s)")
_ALONE: Final = re.compile(r"^(#.*|.*\t.*)$", re.MULTILINE)
"""Headings, and rows of tables."""

_WORD: Final = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)
_EAST: Final = "\u3040"
_EASTERN_FUNCTION_WORDS: Final = re.compile(
    "[\u3041-\u309f]+|[\u4e3a\u70ba]?\u4ec0[\u4e48\u9ebc]|[\u600e\u90a3][\u4e48\u9ebc]|\u591a\u5c11|\u5982\u4f55|\u54ea[\u91cc\u88e1\u4e2a\u500b\u4e9b]?"
    "|[\u5417\u55ce\u5462\u7684\u662f\u4e86\u8c01\u8ab0\u51e0\u5e7e]|[\u8bf7\u8acb][\u95ee\u554f]"
)
"""Hiragana, the script of Japanese endings and particles, and function words of Chinese."""

_CUT: Final = "\0"


@dataclass(frozen=True, slots=True)
class NumberedPassage:
    """A passage and its citation number."""

    number: int
    text: str


@dataclass(slots=True)
class FoundPassages:
    """Passages to answer from; `sources` are the citations that were not sent yet."""

    passages: list[NumberedPassage] = field(default_factory=list)
    sources: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class QuotedSentence:
    """A sentence with the number of its source and its score."""

    text: str
    number: int
    score: float


class Pipe:
    """A model that quotes the passages in the request, or searches collections when there are none."""

    class Valves(BaseModel):
        """Limits of the quotations, and the texts of the answer."""

        collections: str = Field(
            "", description="Ids of the collections to search when a request has none, separated by commas."
        )
        passages: int = Field(
            8, ge=1, le=100, description="Maximum number of passages to read from a search."
        )
        sentences: int = Field(3, ge=1, le=20, description="Maximum number of sentences to quote.")
        share: float = Field(
            0.3, ge=0, le=1, description="Minimum weighted share of the words of the question in a sentence."
        )
        passage_share: float = Field(
            0.5, ge=0, le=1, description="Minimum weighted share of the words of the question in a passage."
        )
        introduction: str = Field("", description="Text before the quotations.")
        nothing: str = Field(
            "Nothing in the documents answers this in its own words.",
            description="Answer when no sentence matches.",
        )
        no_documents: str = Field(
            "There are no documents to answer from: attach files or a collection.",
            description="Answer when there are no passages.",
        )
        no_question: str = Field(
            "Please ask a question.", description="Answer when the request has no question."
        )

    def __init__(self) -> None:
        self.valves = self.Valves()

    async def pipe(
        self,
        body: dict[str, Any],
        __user__: dict[str, Any],
        __messages__: list[Message] | None = None,
        __task__: str | None = None,
        __chat_id__: str | None = None,
        __message_id__: str | None = None,
        __event_emitter__: Emitter | None = None,
    ) -> AsyncIterator[str | dict[str, Any]]:
        """Yield the answer; a task, such as a title, yields nothing."""
        if __task__:
            return
        question = last_question(__messages__ or []) or last_question(body["messages"])
        if not question:
            yield self.valves.no_question
            return
        events = _EventSender(__event_emitter__, bool(__chat_id__ and __message_id__))
        found = FoundPassages(read_passages(body["messages"]))
        if not found.passages and self.valves.collections.strip():
            await events.status("Searching the documents", done=False)
            found = await self._search(question, __user__)
        if found.sources and not await events.sources(found.sources):
            yield {"sources": found.sources}
        shares = self.valves.share, self.valves.passage_share
        quotes = choose_quotes(question, found.passages, self.valves.sentences, *shares)
        await events.status(_describe_result(quotes, found.passages), done=True)
        yield self._answer(quotes, found.passages)

    async def _search(self, question: str, user: dict[str, Any]) -> FoundPassages:
        if query_collection_handler is None:
            return FoundPassages()
        names = [name.strip() for name in self.valves.collections.split(",") if name.strip()]
        form = QueryCollectionsForm(collection_names=names, query=question, k=self.valves.passages)
        answer = await query_collection_handler(None, form, user=user)
        return number_passages(answer["documents"][0], answer["metadatas"][0], answer["distances"][0])

    def _answer(self, quotes: Sequence[QuotedSentence], passages: Sequence[NumberedPassage]) -> str:
        if not passages:
            return self.valves.no_documents
        if not quotes:
            return self.valves.nothing
        introduction = [self.valves.introduction] if self.valves.introduction else []
        return "\n\n".join([*introduction, *(f"> {quote.text} [{quote.number}]" for quote in quotes)])


class _EventSender:
    """Sender of status and source events; sources are sent only when a stored message receives them."""

    def __init__(self, emit: Emitter | None, has_message: bool) -> None:
        self._emit = emit
        self._has_message = has_message

    async def status(self, description: str, *, done: bool) -> None:
        if self._emit is not None:
            await self._emit({"type": "status", "data": {"description": description, "done": done}})

    async def sources(self, sources: Sequence[dict[str, Any]]) -> bool:
        """Emit sources; return whether a message receives them."""
        if self._emit is None or not self._has_message:
            return False
        for source in sources:
            await self._emit({"type": "source", "data": source})
        return True


def last_question(messages: Sequence[Message]) -> str:
    """Return the text of the last user message without the documents before it; "" without one."""
    for message in reversed(messages):
        text = _text(message).rpartition("</context>")[2].strip() if message.get("role") == "user" else ""
        if text:
            return text
    return ""


def read_passages(messages: Sequence[Message]) -> list[NumberedPassage]:
    """Return the passages that the gateway has inserted into the messages, with their numbers."""
    found = [element for message in messages for element in _sources(_text(message))]
    passages = []
    for place, (attributes, inner) in enumerate(found, 1):
        number = _ID.search(attributes)
        passages.append(NumberedPassage(int(number[1]) if number else place, _TAG.sub("<", inner)))
    return passages


def _sources(text: str) -> list[tuple[str, str]]:
    """Return the attributes and the text of each `source` element."""
    found, at = [], 0
    while begin := _SOURCE.search(text, at):
        end = text.find(_SOURCE_END, begin.end())
        if end < 0:
            break
        found.append((begin["attributes"], text[begin.end() : end]))
        at = end + len(_SOURCE_END)
    return found


def number_passages(
    documents: Sequence[str], metadatas: Sequence[dict[str, Any]], distances: Sequence[Any]
) -> FoundPassages:
    """Return the passages of a search, numbered by file, and one source for each file."""
    found = FoundPassages()
    numbers: dict[str, int] = {}
    places: dict[str, str] = {}
    for text, metadata, distance in zip(documents, metadatas, distances, strict=True):
        name = str(metadata.get("source") or metadata.get("name") or "documents")
        file_id = str(metadata.get("file_id") or name)
        if file_id not in numbers:
            numbers[file_id] = len(numbers) + 1
            # Clients number citations by this value: a repeated file name is replaced by the id.
            places[file_id] = file_id if name in places.values() else name
            about = {"type": "file", "id": file_id, "name": name}
            found.sources.append({"source": about, "document": [], "metadata": [], "distances": []})
        source = found.sources[numbers[file_id] - 1]
        for key, value in (("document", text), ("metadata", {**metadata, "source": places[file_id]})):
            source[key].append(value)
        source["distances"].append(distance)
        found.passages.append(NumberedPassage(numbers[file_id], text))
    return found


def choose_quotes(
    question: str, passages: Sequence[NumberedPassage], most: int, share: float, passage_share: float
) -> list[QuotedSentence]:
    """Return the sentences that best match the words of the question, rare words weighing more; best first.

    Sentences of passages that match too few of the words are left out, as chance matches.
    """
    wanted = content_words(question)
    pieces = {each: split_sentences(each.text) for each in passages}
    held = {text: set(split_words(text)) for texts in pieces.values() for text in texts}
    same = _match_words(wanted, set().union(*held.values()))
    matched = {text: {asked for word in one for asked in same.get(word, ())} for text, one in held.items()}
    weights = _weights(wanted, matched.values())
    quotes = {}
    for passage, texts in pieces.items():
        if not _reaches(passage_share, set().union(*map(matched.__getitem__, texts)), weights):
            continue
        for text in texts:
            if _reaches(share, matched[text], weights):
                score = _weighted_share(matched[text], weights) * _by_length(len(held[text]))
                quotes[text, passage.number] = QuotedSentence(text, passage.number, score)
    return distinct_quotes(sorted(quotes.values(), key=lambda quote: -quote.score), most)


def _weights(wanted: set[str], matched: Collection[set[str]]) -> dict[str, float]:
    """Return the weight of each word of the question, higher the fewer sentences contain it."""
    counts = Counter(word for one in matched for word in one)
    return {word: 1 + math.log((len(matched) + 1) / (counts[word] + 1)) for word in wanted}


def _weighted_share(found: set[str], weights: dict[str, float]) -> float:
    return sum(weights[word] for word in found) / sum(weights.values())


def _reaches(share: float, found: set[str], weights: dict[str, float]) -> bool:
    return bool(found) and _weighted_share(found, weights) >= share


def content_words(question: str) -> set[str]:
    """Return the content words of a question; all its words when there are none."""
    text = _EASTERN_FUNCTION_WORDS.sub(" ", question)
    content = {word for word in split_words(text)[:MAX_WORDS] if word not in FUNCTION_WORDS}
    # Single characters left of a Chinese, Japanese or Korean word have no content either.
    content -= {word for word in content if len(word) == 1 and word >= _EAST}
    return content or set(split_words(question)[:MAX_WORDS])


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, each on one line; a short piece is joined with the next."""
    blocks = _BLOCK.sub(_CUT, _ALONE.sub(rf"{_CUT}\1{_CUT}", text.replace(_CUT, " ")))
    sentences: list[str] = []
    short: list[str] = []
    count = 0
    for piece in _SENTENCE.sub(rf"\1\2{_CUT}", blocks).split(_CUT):
        if short and short[0].startswith("#"):
            short, count = [], 0
        more = piece.split()
        short += more
        count += len(split_words(" ".join(more)))
        if count >= MIN_WORDS:
            sentences.append(_shortened(" ".join(short)))
            short, count = [], 0
    if short:
        sentences.append(" ".join(short))
    return sentences


def split_words(text: str) -> list[str]:
    """Return the lower-case words of a text; for scripts without blanks, each pair of characters."""
    found = []
    for run in _WORD.findall(text.lower()):
        if run[0] < _EAST:
            found += [run] if len(run) > 1 or run.isdecimal() else []
        else:
            found += [run[at : at + 2] for at in range(max(1, len(run) - 1))]
    return found


def _match_words(wanted: set[str], held: set[str]) -> dict[str, list[str]]:
    """Return for each word of the documents the words of the question that share its stem."""
    return {
        word: found for word in held if (found := [asked for asked in wanted if _share_stem(asked, word)])
    }


def _share_stem(first: str, second: str) -> bool:
    if first == second:
        return True
    short, long = sorted((first, second), key=len)
    if (
        len(short) < MIN_STEM_CHARACTERS
        or not short.isalpha()
        or short[:MIN_STEM_CHARACTERS] != long[:MIN_STEM_CHARACTERS]
    ):
        return False
    # In a word of three letters one letter may differ.
    stem = max(MIN_STEM_CHARACTERS, len(long) - min(MIN_STEM_CHARACTERS, len(short) - 2))
    return len(short) >= stem and short[:stem] == long[:stem]


def _by_length(count: int) -> float:
    """Return the factor of a sentence by its number of words: lower for headings and long sentences."""
    return 0.6 if count < 5 else 1.0 if count <= 40 else 40 / count


def distinct_quotes(quotes: Sequence[QuotedSentence], most: int) -> list[QuotedSentence]:
    """Return at most `most` quotes of a list sorted by score.

    Quotes far below the best score, and those that contain another or are contained, are left out.
    """
    chosen: list[QuotedSentence] = []
    for quote in quotes:
        # A long text may have thousands of quotes: stop as soon as possible.
        if len(chosen) >= most or quote.score < MIN_SCORE_SHARE * quotes[0].score:
            break
        if not any(quote.text in one.text or one.text in quote.text for one in chosen):
            chosen.append(quote)
    return chosen


def _shortened(text: str) -> str:
    if len(text) <= MAX_WORDS:
        return text
    return f"{text[:MAX_WORDS].rpartition(' ')[0] or text[:MAX_WORDS]}\u2026"


def _describe_result(quotes: Sequence[QuotedSentence], passages: Sequence[NumberedPassage]) -> str:
    read = f"Read {len(passages)} passage{'' if len(passages) == 1 else 's'}"
    return f"{read}, quoted {len(quotes)} sentence{'' if len(quotes) == 1 else 's'}"


def _text(message: Message) -> str:
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))

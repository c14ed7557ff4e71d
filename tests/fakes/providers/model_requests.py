"""Every row that asks a model, with each kind of source behind it, and what that source says."""

from tests.fakes.providers.all_routes_upstream import generate_stream, response_stream, text_stream
from tests.fakes.providers.questions import (
    CHAT,
    COMPLETION,
    EMBEDDING,
    MESSAGE,
    RESPONSE,
    RUNTIME_CHAT,
    RUNTIME_EMBED,
    RUNTIME_GENERATE,
    Question,
)
from tests.fakes.providers.upstream import anthropic_stream, ollama_stream, openai_stream

Case = tuple[Question, str]
"""A row, and a model of the kind of source that answers it."""

STREAMING: dict[str, Case] = {
    "chat of a hosted model": (CHAT, "o.m"),
    "chat of a native model": (CHAT, "a.m"),
    "chat of a runtime": (CHAT, "l.m"),
    "messages of a hosted model": (MESSAGE, "o.m"),
    "messages of a native model": (MESSAGE, "a.m"),
    "messages of a runtime": (MESSAGE, "l.m"),
    "runtime chat of a hosted model": (RUNTIME_CHAT, "o.m"),
    "runtime chat of a native model": (RUNTIME_CHAT, "a.m"),
    "runtime chat of a runtime": (RUNTIME_CHAT, "l.m"),
    "runtime generate of a hosted model": (RUNTIME_GENERATE, "o.m"),
    "runtime generate of a runtime": (RUNTIME_GENERATE, "l.m"),
    "completions of a hosted model": (COMPLETION, "o.m"),
    "responses of a hosted model": (RESPONSE, "o.m"),
}
WHOLE: dict[str, Case] = {
    **STREAMING,
    "embeddings of a hosted model": (EMBEDDING, "o.m"),
    "embeddings of a runtime": (EMBEDDING, "l.m"),
    "runtime embed of a hosted model": (RUNTIME_EMBED, "o.m"),
    "runtime embed of a runtime": (RUNTIME_EMBED, "l.m"),
}


def stream_of(question: Question, model: str, words: list[str]) -> list[bytes]:
    """Return the writes of the provider's whole stream."""
    if question is COMPLETION:
        return text_stream(words, "m")
    if question is RESPONSE:
        return response_stream(words, "m")
    if question is RUNTIME_GENERATE and model.endswith("l.m"):
        return generate_stream(words, "m")
    kinds = {"o.m": openai_stream, "a.m": anthropic_stream, "l.m": ollama_stream}
    return kinds[model[-3:]](words, "m")


def begun(question: Question, model: str) -> bytes:
    """Return the start of the provider's stream: all that comes until it has said "one"."""
    writes = stream_of(question, model, ["one"])
    place = next(place for place, write in enumerate(writes) if b"one" in write)
    return b"".join(writes[: place + 1])

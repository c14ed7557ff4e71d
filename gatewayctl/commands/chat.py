"""`gatewayctl chat run`: ask a model from the terminal."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Annotated, Any

import typer

from gatewayctl.command import Noun, Session
from gatewayctl.completion import completing, files
from gatewayctl.events.citations import citations
from gatewayctl.prompts import usage
from gatewayctl.render import Output
from gatewayctl.wire import routes
from gatewayctl.wire.chat import Chat, Message, Reference

noun = Noun(
    "Ask models, and look after the chats that users have. "
    "Where no verb is named, chat asks: its first argument is the model.",
    lenient=True,
)


@noun.verb(
    "run",
    "gatewayctl chat run smollm2-135m 'Why is the sky blue?'",
    "gatewayctl chat smollm2-135m - < question.txt > answer.md",
    "gatewayctl chat smollm2-135m hello --user ada@example.org -o json",
    "gatewayctl chat - --collection handbook 'How is the pump switched off?'",
)
def run(
    session: Session,
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="Id of the model; - takes the first model.",
        ),
    ] = "-",
    prompt: Annotated[
        list[str] | None, typer.Argument(metavar="PROMPT", help="Question to ask; - reads standard input.")
    ] = None,
    system: Annotated[str | None, typer.Option("--system", help="System message of the request.")] = None,
    temperature: Annotated[
        float | None, typer.Option("--temperature", help="Sampling temperature, 0 to 2.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=1, help="Maximum number of tokens to generate.")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="Ask with the rights of this user.")
    ] = None,
    collection: Annotated[
        list[str] | None,
        typer.Option(
            "--collection",
            "-c",
            metavar="COLLECTION",
            help="Answer from the files of this collection (name or id).",
        ),
    ] = None,
    file: Annotated[
        list[str] | None,
        typer.Option(
            "--file",
            metavar="FILE",
            help="Answer from this file (id).",
            autocompletion=completing(files),
        ),
    ] = None,
) -> None:
    """Ask a model and print the answer while it comes: Markdown on a terminal, plain in a pipe.

    With documents to answer from, the files that the answer may cite by number follow on standard error, each
    with the pages that were read.

    With -o json the answer is an OpenAI chat completion, with -o jsonl its chunks, one a line. Without a
    prompt, or with -, the question is read from standard input.
    """
    request = _request(model, _question(prompt or []), system)
    for name, value in (("temperature", temperature), ("max_tokens", max_tokens), ("user", user)):
        if value is not None:
            setattr(request, name, value)
    request.files = _references(collection or (), file or ())
    _show(session, request)


def _show(session: Session, request: Chat) -> None:
    """Ask the model, and print the answer as it arrives."""
    if session.output is Output.JSON:
        session.renderer.json(session.client.ask(request))
        return
    with closing(session.client.stream(routes.CHAT, request)) as events:
        if session.output is Output.JSONL:
            for event in events:
                session.renderer.json(event)
                sys.stdout.flush()
            return
        answer = StreamedAnswer(events)
        session.renderer.answer(answer.pieces())
    for note in answer.notes():
        session.note(note)


class StreamedAnswer:
    """A streamed answer: its text, warnings and sources."""

    def __init__(self, events: Iterator[Mapping[str, Any]]) -> None:
        self._events = events
        self._sources: list[Any] = []
        self._warnings: list[str] = []

    def pieces(self) -> Iterator[str]:
        """Yield the text as it arrives."""
        for event in self._events:
            self._warnings += event.get("warnings") or ()
            self._sources += event.get("sources") or ()
            for choice in event.get("choices") or ():
                content = (choice.get("delta") or {}).get("content")
                if isinstance(content, str):
                    yield content

    def notes(self) -> Iterator[str]:
        """Yield a line for each warning and each source, with the numbers of the prompt."""
        for warning in self._warnings:
            yield f"warning: {warning}"
        for number, cited in enumerate(citations(self._sources), start=1):
            yield f"[{number}] {cited}"


def _request(model: str, question: str, system: str | None) -> Chat:
    messages = [Message(role="system", content=system)] if system else []
    request = Chat(messages=[*messages, Message(role="user", content=question)])
    if model != "-":
        request.model = model
    return request


def _references(collections: Iterable[str], files: Iterable[str]) -> list[Reference]:
    return [
        *(Reference(type="collection", id=ref) for ref in collections),
        *(Reference(type="file", id=file_id) for file_id in files),
    ]


def _question(words: list[str]) -> str:
    if not words and sys.stdin.isatty():
        raise usage("cannot ask: give a prompt, or - to read it from standard input", param="PROMPT")
    text = " ".join(words) if words and words != ["-"] else sys.stdin.read()
    if not text.strip():
        raise usage("cannot ask: the prompt is empty", param="PROMPT")
    return text

"""`gatewayctl chat run`: ask a model from the terminal."""

import shlex
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from types import TracebackType
from typing import Annotated, Any

import typer

from gatewayctl.command import Noun, Session
from gatewayctl.completion import completing, files
from gatewayctl.events.citations import citations
from gatewayctl.failures import CommandError
from gatewayctl.prompts import usage
from gatewayctl.render import Output
from gatewayctl.transport import StreamCutError
from gatewayctl.wire import routes
from gatewayctl.wire.chat import Chat, Message, Reference

noun = Noun(
    "Ask models, and look after the chats that users have. "
    "Where no verb is named, chat asks: its first argument is the model.",
    lenient=True,
)

AskedModel = Annotated[str, typer.Argument(metavar="MODEL", help="Id of the model; - takes the first model.")]
Prompt = Annotated[
    list[str] | None, typer.Argument(metavar="PROMPT", help="Question to ask; - reads standard input.")
]
SystemText = Annotated[str | None, typer.Option("--system", help="System message of the request.")]
Temperature = Annotated[float | None, typer.Option("--temperature", help="Sampling temperature, 0 to 2.")]
MaxTokens = Annotated[
    int | None, typer.Option("--max-tokens", min=1, help="Maximum number of tokens to generate.")
]
AskingUser = Annotated[
    str | None, typer.Option("--user", metavar="USER", help="Ask with the rights of this user.")
]
Collections = Annotated[
    list[str] | None,
    typer.Option(
        "--collection",
        "-c",
        metavar="COLLECTION",
        help="Answer from the files of this collection (name or id).",
    ),
]
Files = Annotated[
    list[str] | None,
    typer.Option(
        "--file",
        metavar="FILE",
        help="Answer from this file (id).",
        autocompletion=completing(files),
    ),
]
ResumedId = Annotated[
    str | None,
    typer.Option(
        "--resume",
        metavar="ID",
        help="Print the answer with this id from its beginning, and follow it to its end.",
    ),
]


@noun.verb(
    "run",
    "gatewayctl chat run smollm2-135m 'Why is the sky blue?'",
    "gatewayctl chat smollm2-135m - < question.txt > answer.md",
    "gatewayctl chat smollm2-135m hello --user ada@example.org -o json",
    "gatewayctl chat - --collection handbook 'How is the pump switched off?'",
    "gatewayctl chat --resume 019aa3c2-7d1e-7c3a-9b7e-3f2f8d1c5a60",
)
def run(
    session: Session,
    model: AskedModel = "-",
    prompt: Prompt = None,
    system: SystemText = None,
    temperature: Temperature = None,
    max_tokens: MaxTokens = None,
    user: AskingUser = None,
    collection: Collections = None,
    file: Files = None,
    resume: ResumedId = None,
) -> None:
    """Ask a model and print the answer while it comes: Markdown on a terminal, plain in a pipe.

    With documents to answer from, the files that the answer may cite by number follow on standard error, each
    with the pages that were read.

    With -o json the answer is an OpenAI chat completion, with -o jsonl its chunks, one a line. Without a
    prompt, or with -, the question is read from standard input.

    An answer goes on for stream_unread_timeout seconds when the connection breaks or the terminal is closed.
    Its id is printed on a terminal at the beginning, and by the error of a broken connection; --resume prints
    such an answer, with the same --user. An interrupt (control-C) stops the answer.
    """
    if resume is not None:
        _resume(session, resume, user, is_alone=model == "-" and not prompt)
        return
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
    elif session.output is Output.JSONL:
        _print_lines(session, session.client.stream(routes.CHAT, request))
    else:
        request.resumable = True
        answer = StreamedAnswer(session.client.stream(routes.CHAT, request))
        kept = KeptAnswer(session, request.user)
        with kept:
            session.renderer.answer(answer.pieces(kept.name))
        _print_notes(session, answer)


def _resume(session: Session, stream_id: str, user: str | None, *, is_alone: bool) -> None:
    """Print an answer from its beginning, and follow it."""
    if not is_alone:
        raise usage("cannot resume an answer: give no model and no prompt", param="--resume")
    events = session.client.replay(routes.RESUME_ANSWER, stream_id, user=user)
    if session.output in {Output.JSON, Output.JSONL}:
        _print_lines(session, events)
        return
    answer = StreamedAnswer(events)
    session.renderer.answer(answer.pieces())
    _print_notes(session, answer)


def _print_lines(session: Session, events: Generator[dict[str, Any], None, None]) -> None:
    with closing(events):
        for event in events:
            session.renderer.json(event)
            sys.stdout.flush()


def _print_notes(session: Session, answer: "StreamedAnswer") -> None:
    for note in answer.notes():
        session.note(note)


class KeptAnswer:
    """Context manager around the output of an answer that goes on without its reader.

    A broken connection leaves the answer, and its error says how to go on; any other failure stops it.
    """

    def __init__(self, session: Session, user: str | None) -> None:
        self._session = session
        self._user = user
        self._id = ""

    def name(self, stream_id: str) -> None:
        """Note the id of the answer; tell it to a person."""
        self._id = stream_id
        if sys.stderr.isatty():
            self._session.note(f"if the connection breaks: {self._command}")

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Add the command to the error of a broken connection, or stop the answer."""
        if error is None or not self._id:
            return
        if isinstance(error, CommandError) and (isinstance(error, StreamCutError) or is_lost(error)):
            error.hint = f"the answer may go on: {self._command}"
            return
        with suppress(CommandError):
            self._session.client.call(routes.STOP_ANSWER, self._id, user=self._user)

    @property
    def _command(self) -> str:
        user = f" --user {shlex.quote(self._user)}" if self._user else ""
        return f"gatewayctl chat --resume {self._id}{user}"


def is_lost(error: CommandError) -> bool:
    """Return whether the connection to the daemon broke."""
    return error.kind == "unreachable"


class StreamedAnswer:
    """A streamed answer: its text, warnings and sources."""

    def __init__(self, events: Generator[Mapping[str, Any], None, None]) -> None:
        self._events = events
        self._sources: list[Any] = []
        self._warnings: list[str] = []

    def pieces(self, on_id: Callable[[str], None] = lambda _: None) -> Iterator[str]:
        """Yield the text as it arrives; `on_id` gets the id of an answer that can be resumed."""
        with closing(self._events) as events:
            yield from self._texts(events, on_id)

    def _texts(self, events: Iterator[Mapping[str, Any]], on_id: Callable[[str], None]) -> Iterator[str]:
        for event in events:
            stream = event.get("stream")
            if isinstance(stream, dict) and isinstance(stream.get("id"), str):
                on_id(stream["id"])
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

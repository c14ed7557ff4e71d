"""`gatewayctl event`: events of messages while they are generated, and answers to calls of plugins."""

import sys
import time
from contextlib import closing
from typing import Annotated, Any

import typer

from gatewayctl.command import Noun, Session
from gatewayctl.events.call_prompts import ask
from gatewayctl.events.follower import GAP, EventFollower, Happening, Whose
from gatewayctl.events.lines import line_of, question_of
from gatewayctl.failures import CommandError
from gatewayctl.prompts import read_secret, usage
from gatewayctl.render import Output, View
from gatewayctl.sanitize import as_json
from gatewayctl.values import read_json
from gatewayctl.wire import routes
from gatewayctl.wire.events import Call, CallAnswer

noun = Noun("Events: what plugins and models report while they work, and what they ask.")

CALLS: View[Call] = View(
    name=lambda call: call.id,
    columns={
        "ID": lambda call: call.id,
        "TYPE": lambda call: call.type,
        "QUESTION": lambda call: question_of(call.data),
        "USER": lambda call: call.user or call.user_id,
        "CHAT": lambda call: call.chat_id,
        "CREATED": lambda call: call.created_at,
    },
)


@noun.verb(
    "follow",
    "gatewayctl event follow --user ada@example.org",
    "gatewayctl event follow --all -o jsonl | jq -r .type",
    "gatewayctl event follow --chat 0f7d2c54-3a57-4c0b-9d0f-5f2f1d4b7a10 --since Zk3q-41 --count 10",
)
def follow(
    session: Session,
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="Follow the events of this user.")
    ] = None,
    chat: Annotated[
        str | None, typer.Option("--chat", metavar="CHAT", help="Follow only the events of this chat (id).")
    ] = None,
    everybody: Annotated[bool, typer.Option("--all", help="Follow the events of all users.")] = False,
    since: Annotated[
        str | None, typer.Option("--since", metavar="ID", help="Start after the event with this id.")
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", min=1, help="Number of events after which to end.")
    ] = None,
) -> None:
    """Show events as they come, one a line, until interrupted, which ends with code 130.

    A connection that breaks is opened again, and goes on where it was. Where events may be lost, a line says
    so.

    Who follows one user is a live connection of that user, whom plugins may ask: see event answer. With
    --all nobody is asked who would not be otherwise. With -o json or -o jsonl an event is a JSON object with
    id, user, chat_id, message_id, call_id, type and data, with -o name its id alone.
    """
    if (everybody and user is not None) or not (everybody or user or chat):
        raise usage("cannot follow events without a selection: add --user, --chat or --all", param="--user")
    whose = Whose(user, chat, everybody)
    follower = EventFollower(session.client, whose, since, note=session.note)
    left = count
    try:
        with closing(follower.events()) as events:
            for event in events:
                _show(session, event)
                if left is not None and event.type != GAP:
                    left -= 1
                if left == 0:
                    return
    except KeyboardInterrupt:
        hint = f"--since {follower.last} goes on from here" if follower.last else ""
        raise CommandError("stopped", "stopped following", hint=hint) from None


@noun.verb("calls", "gatewayctl event calls --user ada@example.org")
def calls(
    session: Session,
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="List only the calls to this user.")
    ] = None,
) -> None:
    """List calls that wait for an answer, oldest first."""
    session.show_all(session.client.call(routes.LIST_CALLS, user=user).calls, CALLS)


@noun.verb(
    "answer",
    "gatewayctl event answer 3f1f8f0e-6a0c-4f1d-9c39-64c9dbf9b7ce",
    "gatewayctl event answer 3f1f8f0e-6a0c-4f1d-9c39-64c9dbf9b7ce --yes",
    "gatewayctl event answer 3f1f8f0e-6a0c-4f1d-9c39-64c9dbf9b7ce --value - < token",
)
def answer(
    session: Session,
    call: Annotated[
        str, typer.Argument(metavar="CALL", help="Id of the call, as event calls and event follow show it.")
    ],
    value: Annotated[
        str | None,
        typer.Option("--value", metavar="TEXT", help="Answer with this text; - reads standard input."),
    ] = None,
    value_json: Annotated[
        str | None,
        typer.Option(
            "--json", metavar="JSON", help="Answer with this JSON value, for example the result of a script."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Answer yes to a confirmation.")] = False,
    no: Annotated[bool, typer.Option("--no", help="Answer no, or cancel the input.")] = False,
    error: Annotated[
        str | None,
        typer.Option("--error", metavar="TEXT", help="Answer that the call failed, with this reason."),
    ] = None,
) -> None:
    """Answer a call of a plugin in place of its user; the first answer counts.

    On a terminal the question is asked where no answer is given.
    """
    given = [value is not None, value_json is not None, yes, no, error is not None]
    if sum(given) > 1:
        raise usage("cannot give more than one answer", param="--value")
    if not any(given):
        reply = ask(_waiting(session, call))
    elif error is not None:
        reply = CallAnswer(error=error)
    else:
        reply = CallAnswer(result=_result(value, value_json, agrees=yes))
    answered = session.client.call(routes.ANSWER_CALL, call, body=reply)
    if session.output is Output.TABLE:
        session.renderer.say(f"answered {answered.type} {answered.id}")
        return
    session.show(answered, CALLS)


def _show(session: Session, event: Happening) -> None:
    match session.output:
        case Output.TABLE:
            session.renderer.say(line_of(event, time.strftime("%H:%M:%S")))
        case Output.NAME:
            session.renderer.say(event.call_id or event.id or event.type)
        case Output.JSON | Output.JSONL:
            sys.stdout.write(f"{as_json(event.model_dump())}\n")
    sys.stdout.flush()


def _waiting(session: Session, call_id: str) -> Call:
    for call in session.client.call(routes.LIST_CALLS).calls:
        if call.id == call_id:
            return call
    raise CommandError("not_found", f"cannot find call {call_id!r}: no such call waits for an answer")


def _result(value: str | None, value_json: str | None, *, agrees: bool) -> Any:
    if value is not None:
        return read_secret("-", "--value") if value == "-" else value
    if value_json is None:
        return agrees
    try:
        return read_json(value_json)
    except ValueError as error:
        raise usage(f"cannot read --json: {error}", param="--json") from error

"""`gatewayctl task`: answers that are being generated."""

from typing import Annotated

import typer

from gatewayctl.command import Noun, Session
from gatewayctl.prompts import usage
from gatewayctl.render import Output, View
from gatewayctl.wire import routes
from gatewayctl.wire.tasks import Task, TaskStop

noun = Noun("Tasks: answers, titles and the like that are being made.")

ROWS: View[Task] = View(
    name=lambda task: task.id,
    columns={
        "ID": lambda task: task.id,
        "NAME": lambda task: task.name,
        "USER": lambda task: task.user or task.user_id,
        "CHAT": lambda task: task.chat_id,
        "MESSAGE": lambda task: task.message_id,
        "STARTED": lambda task: task.started_at,
    },
)


@noun.verb("list", "gatewayctl task list", "gatewayctl task list --user ada@example.org -o name")
def list_tasks(
    session: Session,
    chat: Annotated[
        str | None, typer.Option("--chat", metavar="CHAT", help="List only the tasks of this chat (id).")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="List only the tasks of this user.")
    ] = None,
) -> None:
    """List running tasks, oldest first."""
    session.show_all(session.client.call(routes.LIST_TASKS, chat=chat, user=user).tasks, ROWS)


@noun.verb(
    "stop",
    "gatewayctl task stop 5b0c6a0e-58a4-4a33-bd0a-0d1d5c0a7f39",
    "gatewayctl task stop --chat 0f7d2c54-3a57-4c0b-9d0f-5f2f1d4b7a10",
)
def stop(
    session: Session,
    task: Annotated[str | None, typer.Argument(metavar="TASK", help="Id of the task.")] = None,
    chat: Annotated[
        str | None, typer.Option("--chat", metavar="CHAT", help="Stop all tasks of this chat (id).")
    ] = None,
) -> None:
    """Stop a task, or all tasks of a chat, and wait until they have ended; a partial answer is kept."""
    if (task is None) == (chat is None):
        raise usage("cannot stop tasks without a selection: add a task, or --chat", param="TASK")
    request = TaskStop(chat=chat) if task is None else TaskStop(task=task)
    stopped = session.client.call(routes.STOP_TASKS, body=request).tasks
    if session.output is Output.TABLE:
        session.renderer.say(f"stopped {' '.join(each.id for each in stopped) or 'nothing: no task runs'}")
        return
    session.show_all(stopped, ROWS)

"""Tasks that users started, on the wire: answers that are being made."""

from gatewayctl.wire.base import Reply, Request


class Task(Reply):
    """A running task; `chat_id` and `message_id` are empty when it works at no stored chat."""

    id: str
    name: str
    user_id: str
    user: str = ""
    chat_id: str = ""
    message_id: str = ""
    started_at: str | None = None


class TaskList(Reply):
    """Tasks, oldest first."""

    tasks: list[Task]


class TaskStop(Request):
    """What to stop: one task by its id, or all tasks of a chat."""

    task: str | None = None
    chat: str | None = None


class TasksStopped(Reply):
    """The tasks that were stopped; each has ended, and what it had made is kept."""

    tasks: list[Task]

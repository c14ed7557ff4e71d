"""Tasks of users on the wire: answers that are being generated."""

from gatewayctl.wire.base import Reply, Request


class Task(Reply):
    """A running task; `chat_id` and `message_id` are empty if it belongs to no stored chat."""

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
    """Tasks to stop: one by its id, or all of a chat."""

    task: str | None = None
    chat: str | None = None


class TasksStopped(Reply):
    """The stopped tasks; each has ended, and its partial answer is saved."""

    tasks: list[Task]

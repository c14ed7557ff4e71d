"""Files on the wire.

`POST /v1/files` takes the bytes of a file as its body (`application/octet-stream`); everything else about it
stands in the query, as `NewFile` says.
"""

from pydantic import Field

from gatewayctl.wire.base import Reply, Request, Written


class File(Reply):
    """A file; `status` is stored, pending, completed or failed, and `error` says why it failed.

    `checksum` is what the client called the version that it sent, else the SHA-256 of the bytes. `passages`
    and `characters` are what was extracted. `blank_pages` counts the pages without text, of which `warning`
    tells.
    """

    id: str
    name: str
    user_id: str
    user: str = ""
    status: str
    error: str | None = None
    size: int
    content_type: str | None = None
    checksum: str
    passages: int = 0
    characters: int = 0
    pages: int | None = None
    blank_pages: int = 0
    warning: str | None = None
    collections: list[str] = Field(default_factory=list)
    updated_at: str | None = None
    created_at: str | None = None


class FileList(Reply):
    """Files, newest first; `total` counts those on other pages, too."""

    files: list[File]
    total: int = 0


class FileText(Reply):
    """What was extracted from a file."""

    id: str
    text: str


class FileWritten(Written, File):
    """A file after a write."""


class Gift(Request):
    """Who is to own a file or a collection: a user (id or e-mail)."""

    user: str


class NewFile(Request):
    """The query of an upload.

    `user` (id or e-mail) owns it, the first administrator when absent. With `collection` (id or name) the
    file is put there once it is completed; `origin` and `path` say which place it takes (see
    `collections.Sync`).
    """

    name: str
    content_type: str | None = None
    user: str | None = None
    collection: str | None = None
    origin: str | None = None
    path: str | None = None
    checksum: str | None = None


class Wait(Request):
    """Wait until these files are completed, failed or gone, at most so many seconds (1 to 30)."""

    ids: list[str]
    seconds: int = 20


class Waited(Reply):
    """How the files are now: those that are gone are missing; `is_done` when none is pending."""

    files: list[File]
    is_done: bool


class Queue(Reply):
    """How much is to do: files that wait, that are being worked on, that failed."""

    waiting: int
    working: int
    failed: int

"""Files on the wire.

`POST /v1/files` takes the bytes of a file as its body (`application/octet-stream`); its attributes are in the
query, see `NewFile`.
"""

from pydantic import Field

from gatewayctl.wire.base import Reply, Request, Written


class File(Reply):
    """A file; `status` is stored, pending, completed or failed, and `error` says why it failed.

    `checksum` is that which the client sent for this version, else the SHA-256 of the bytes. `passages` and
    `characters` count the extracted text, `blank_pages` the pages without text; `warning` reports these.
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
    """The extracted text of a file."""

    id: str
    text: str


class FileWritten(Written, File):
    """A file after a write."""


class Gift(Request):
    """The new owner of a file or a collection: a user (id or e-mail)."""

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
    """Wait until these files are completed, failed or removed, at most `seconds` (1 to 30)."""

    ids: list[str]
    seconds: int = 20


class Waited(Reply):
    """The present state of the files, without removed ones; `is_done` if none is pending."""

    files: list[File]
    is_done: bool


class Queue(Reply):
    """Number of files that wait, are being processed, and failed."""

    waiting: int
    working: int
    failed: int

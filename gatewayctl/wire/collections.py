"""Collections on the wire."""

from pydantic import Field

from gatewayctl.wire.base import Reply, Request, Written
from gatewayctl.wire.files import File


class Collection(Reply):
    """A collection; `files` counts completed files. `readers` and `writers` name users, groups or `*`."""

    id: str
    name: str
    description: str = ""
    user_id: str
    user: str = ""
    files: int = 0
    readers: list[str] = Field(default_factory=list)
    writers: list[str] = Field(default_factory=list)
    updated_at: str | None = None
    created_at: str | None = None


class CollectionList(Reply):
    """Collections, last changed first; `total` counts those on other pages, too."""

    collections: list[Collection]
    total: int = 0


class CollectionWritten(Written, Collection):
    """A collection after a write."""


class NewCollection(Request):
    """A collection to create, or with PUT to find by its name or create.

    `user` (id or e-mail) owns it, the first administrator when absent. `readers` and `writers` are users (id
    or e-mail), groups as `group:NAME`, or `*` for everybody.
    """

    name: str
    description: str = ""
    user: str | None = None
    readers: list[str] = Field(default_factory=list)
    writers: list[str] = Field(default_factory=list)


class CollectionChange(Request):
    """Changes of a collection; absent fields stay."""

    name: str | None = None
    description: str | None = None
    readers: list[str] | None = None
    writers: list[str] | None = None


class CollectionMembers(Request):
    """Files (ids) to add or remove; `delete` also deletes removed files that no other collection holds."""

    files: list[str]
    delete: bool = False


class MemberResult(Reply):
    """Outcome of one file: added, unchanged, removed, deleted or failed, with the reason in `error`."""

    id: str
    outcome: str
    error: str | None = None


class MembersWritten(Reply):
    """Outcome of each file."""

    results: list[MemberResult]
    dry_run: bool = False


class CollectionFile(Reply):
    """A file of a collection and its place there."""

    file: File
    origin: str = ""
    path: str = ""


class CollectionFiles(Reply):
    """One page of the files of a collection in the order in which they were added."""

    files: list[CollectionFile]
    total: int = 0


class Entry(Request):
    """A file that a client keeps in a collection: its relative path and SHA-256."""

    path: str
    checksum: str


class Sync(Request):
    """All present files of an origin (a directory), for comparison with its files in the collection."""

    origin: str
    entries: list[Entry]


class Difference(Reply):
    """Differences between an origin and a collection.

    Paths to upload because they are `added` or `modified`; `unmodified` ones and those `pending` from an
    earlier run; `failed` holds the files that this very content made before. `deleted` are files whose paths
    are gone.
    """

    added: list[str] = Field(default_factory=list)
    modified: list[str] = Field(default_factory=list)
    unmodified: list[str] = Field(default_factory=list)
    pending: list[CollectionFile] = Field(default_factory=list)
    failed: list[CollectionFile] = Field(default_factory=list)
    deleted: list[CollectionFile] = Field(default_factory=list)


class Query(Request):
    """A search; absent fields default to the settings. `threshold` is the minimum similarity, 0 to 1."""

    query: str
    k: int | None = None
    threshold: float | None = None
    hybrid: bool | None = None


class Passage(Reply):
    """A passage that was found; ranks count from 1, None where that kind of search did not find it."""

    text: str
    score: float
    similarity: float | None = None
    file_id: str
    file: str
    page: int | None = None
    heading: str | None = None
    start: int = 0
    dense: float | None = None
    dense_rank: int | None = None
    lexical: float | None = None
    lexical_rank: int | None = None


class SearchAnswer(Reply):
    """The passages, best first, and warnings."""

    passages: list[Passage]
    warnings: list[str] = Field(default_factory=list)


class CheckReport(Reply):
    """Check of a collection and its indexes; each problem is repaired unless its sentence says otherwise."""

    id: str
    name: str
    files: int
    passages: int
    vectors: int
    problems: list[str] = Field(default_factory=list)


class Reindex(Reply):
    """Progress of the vectors of the configured model.

    `active` is the space that is searched, `target` the one that is built, empty when both are the same.
    `state` is current, behind, running or failed.
    """

    state: str
    active: str = ""
    target: str = ""
    done: int = 0
    total: int = 0
    error: str | None = None

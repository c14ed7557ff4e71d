"""One request for each row about documents, which succeeds for an administrator or a user with permission.

The site lets users upload files and make collections: `PERMISSIONS` are its defaults.
"""

import json
import time
from collections.abc import Callable
from typing import Any

from tests.fakes.daemons.role_site import Site
from tests.fakes.http.multipart_forms import FORM, file_part, form
from tests.fakes.http.samples import Row, Sample

FILES, KNOWLEDGE, RETRIEVAL = "/api/v1/files", "/api/v1/knowledge", "/api/v1/retrieval"
PERMISSIONS = {"workspace": {"knowledge": True}, "chat": {"file_upload": True}}
EVERYBODY = [{"principal_type": "user", "principal_id": "*", "permission": "write"}]
UPLOAD: Row = ("POST", f"{FILES}/")
"""The row whose body is a form: `upload` sends it."""


def upload(site: Site, token: str | None, query: str = "") -> Any:
    """Upload a file with a text of its own and return the whole reply."""
    content = form(file_part(f"text number {next(site.numbers)}".encode()))
    return site.send("POST", f"{FILES}/{query}", content, token, {"Content-Type": FORM})


def add_file(site: Site) -> str:
    """Make a finished file of the user's and return its id; administrators may use it, too."""
    reply = upload(site, site.user, "?process_in_background=false")
    record = json.loads(reply.body)
    assert (reply.status, record["data"]["status"]) == (200, "completed"), record
    return str(record["id"])


def add_collection(site: Site, *file_ids: str) -> str:
    """Make a collection that everybody may write, with files, and return its id."""
    body = {"name": f"c{next(site.numbers)}", "description": "", "access_grants": EVERYBODY}
    status, made = site.call("POST", f"{KNOWLEDGE}/create", body, site.admin)
    assert status == 200, made
    for file_id in file_ids:
        path = f"{KNOWLEDGE}/{made['id']}/file/add"
        status, answer = site.call("POST", path, {"file_id": file_id}, site.admin)
        assert status == 200, answer
    return str(made["id"])


def with_file(path: str, body: Any = None) -> Sample:
    return lambda site: (FILES + path.format(id=add_file(site)), body)


def with_collection(path: str, body: Any = None) -> Sample:
    return lambda site: (KNOWLEDGE + path.format(id=add_collection(site)), body)


def with_member(path: str, make: Callable[[str], Any] = lambda file_id: {"file_id": file_id}) -> Sample:
    """Ask about a collection and a file in it."""

    def sample(site: Site) -> tuple[str, Any]:
        file_id = add_file(site)
        return KNOWLEDGE + path.format(id=add_collection(site, file_id)), make(file_id)

    return sample


def with_stranger(path: str, make: Callable[[str], Any]) -> Sample:
    """Ask about a collection and a file that is not in it."""
    return lambda site: (KNOWLEDGE + path.format(id=add_collection(site)), make(add_file(site)))


def with_directory(path: str, body: Any = None) -> Sample:
    def sample(site: Site) -> tuple[str, Any]:
        collection_id = add_collection(site)
        made = site.call("POST", f"{KNOWLEDGE}/{collection_id}/dirs/create", {"name": "a"}, site.admin)[1]
        return KNOWLEDGE + path.format(id=collection_id, directory_id=made["id"]), body

    return sample


def retried(site: Site) -> tuple[str, Any]:
    """Ask for another attempt at a file that is stored only."""
    record = json.loads(upload(site, site.user, "?process=false").body)
    return f"{FILES}/{record['id']}/process", None


def searched(site: Site) -> tuple[str, Any]:
    """Ask for files that are there."""
    for token in (site.user, site.admin):
        upload(site, token)
    return f"{FILES}/search?filename=*.txt", None


def idle(site: Site) -> tuple[str, Any]:
    """Ask for the removal of everything, once nothing is processed."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        listed = site.call("GET", f"{FILES}/", None, site.admin)[1]["items"]
        if all(file["data"].get("status") != "pending" for file in listed):
            break
        time.sleep(0.05)
    return f"{FILES}/all", None


def question(path: str, names: Callable[[str], Any]) -> Sample:
    return lambda site: (
        f"{RETRIEVAL}/query/{path}",
        {**names(add_collection(site)), "query": "text", "hybrid": True},
    )


def retrieval(path: str, make: Callable[[str, str], Any], *, is_member: bool = False) -> Sample:
    """Ask about a collection and a file."""

    def sample(site: Site) -> tuple[str, Any]:
        file_id = add_file(site)
        collection_id = add_collection(site, file_id) if is_member else add_collection(site)
        return RETRIEVAL + path, make(collection_id, file_id)

    return sample


DOCUMENT_SAMPLES: dict[Row, Sample] = {
    ("GET", f"{FILES}/"): lambda _: (f"{FILES}/", None),
    ("GET", f"{FILES}/search"): searched,
    ("GET", f"{FILES}/count"): lambda _: (f"{FILES}/count", None),
    ("DELETE", f"{FILES}/all"): idle,
    ("GET", f"{FILES}/{{id}}"): with_file("/{id}"),
    ("GET", f"{FILES}/{{id}}/process/status"): with_file("/{id}/process/status"),
    ("POST", f"{FILES}/{{id}}/process"): retried,
    ("GET", f"{FILES}/{{id}}/data/content"): with_file("/{id}/data/content"),
    ("POST", f"{FILES}/{{id}}/data/content/update"): with_file(
        "/{id}/data/content/update", {"content": "other text"}
    ),
    ("POST", f"{FILES}/{{id}}/rename"): with_file("/{id}/rename", {"filename": "b.txt"}),
    ("DELETE", f"{FILES}/{{id}}"): with_file("/{id}"),
    ("GET", f"{KNOWLEDGE}/"): lambda _: (f"{KNOWLEDGE}/", None),
    ("GET", f"{KNOWLEDGE}/list"): lambda _: (f"{KNOWLEDGE}/list", None),
    ("GET", f"{KNOWLEDGE}/search"): lambda _: (f"{KNOWLEDGE}/search?query=c", None),
    ("POST", f"{KNOWLEDGE}/create"): lambda site: (
        f"{KNOWLEDGE}/create",
        {"name": f"c{next(site.numbers)}", "description": ""},
    ),
    ("GET", f"{KNOWLEDGE}/{{id}}"): with_collection("/{id}"),
    ("POST", f"{KNOWLEDGE}/{{id}}/update"): with_collection("/{id}/update", {"name": "c", "description": ""}),
    ("POST", f"{KNOWLEDGE}/{{id}}/access/update"): with_collection(
        "/{id}/access/update", {"access_grants": EVERYBODY}
    ),
    ("GET", f"{KNOWLEDGE}/{{id}}/files"): with_collection("/{id}/files"),
    ("GET", f"{KNOWLEDGE}/{{id}}/files/pending"): with_collection("/{id}/files/pending"),
    ("POST", f"{KNOWLEDGE}/{{id}}/file/add"): with_stranger(
        "/{id}/file/add", lambda file_id: {"file_id": file_id}
    ),
    ("POST", f"{KNOWLEDGE}/{{id}}/file/update"): with_member("/{id}/file/update"),
    ("POST", f"{KNOWLEDGE}/{{id}}/file/remove"): with_member("/{id}/file/remove"),
    ("POST", f"{KNOWLEDGE}/{{id}}/file/move"): with_member(
        "/{id}/file/move", lambda file_id: {"file_id": file_id, "directory_id": None}
    ),
    ("POST", f"{KNOWLEDGE}/{{id}}/files/batch/add"): with_stranger(
        "/{id}/files/batch/add", lambda file_id: [{"file_id": file_id}]
    ),
    ("POST", f"{KNOWLEDGE}/{{id}}/reset"): with_collection("/{id}/reset"),
    ("DELETE", f"{KNOWLEDGE}/{{id}}/delete"): with_collection("/{id}/delete"),
    ("POST", f"{KNOWLEDGE}/{{id}}/sync/diff"): with_collection("/{id}/sync/diff", {"manifest": []}),
    ("POST", f"{KNOWLEDGE}/{{id}}/sync/cleanup"): with_collection("/{id}/sync/cleanup", {"file_ids": []}),
    ("POST", f"{KNOWLEDGE}/{{id}}/dirs/create"): with_collection("/{id}/dirs/create", {"name": "a"}),
    ("POST", f"{KNOWLEDGE}/{{id}}/dirs/{{directory_id}}/update"): with_directory(
        "/{id}/dirs/{directory_id}/update", {"name": "b"}
    ),
    ("DELETE", f"{KNOWLEDGE}/{{id}}/dirs/{{directory_id}}/delete"): with_directory(
        "/{id}/dirs/{directory_id}/delete"
    ),
    ("POST", f"{RETRIEVAL}/query/doc"): question("doc", lambda name: {"collection_name": name}),
    ("POST", f"{RETRIEVAL}/query/collection"): question(
        "collection", lambda name: {"collection_names": [name]}
    ),
    ("POST", f"{RETRIEVAL}/query/explain"): question("explain", lambda name: {"collection_names": [name]}),
    ("POST", f"{RETRIEVAL}/process/file"): retrieval(
        "/process/file", lambda name, file_id: {"file_id": file_id}
    ),
    ("POST", f"{RETRIEVAL}/process/text"): retrieval(
        "/process/text", lambda name, file_id: {"name": "note", "content": f"about {file_id}"}
    ),
    ("POST", f"{RETRIEVAL}/process/files/batch"): retrieval(
        "/process/files/batch", lambda name, file_id: {"files": [{"id": file_id}], "collection_name": name}
    ),
    ("POST", f"{RETRIEVAL}/delete"): retrieval(
        "/delete", lambda name, file_id: {"collection_name": name, "file_id": file_id}, is_member=True
    ),
}
"""All but `UPLOAD`, and those that answer bytes (`BYTES`)."""

BYTES: dict[Row, Sample] = {
    ("GET", f"{FILES}/{{id}}/content"): with_file("/{id}/content"),
    ("GET", f"{FILES}/{{id}}/content/{{name}}"): with_file("/{id}/content/a.txt"),
}
"""The rows whose answer is no JSON."""

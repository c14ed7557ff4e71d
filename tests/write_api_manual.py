"""Writer of man/gatewayd-api.7, generated from the route rows of the public application.

Run from the top of the repository after a change: python -m tests.write_api_manual
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from unittest.mock import MagicMock

from gatewayd import __released__
from gatewayd.assembly.routes import StreamingRoutes, public_rows
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.errors import CODE_STATUSES, STATUSES
from gatewayd.http.openapi import PARAMETER_PATTERN, POLICY, component, resolved
from gatewayd.http.public.docs import DocsRoutes
from gatewayd.http.public.events import EventRoutes
from gatewayd.http.routes import Route, RouteAccess, RouteDialect
from gatewayd.http.schemas import Schema
from gatewayd.http.socketio.sessions import SocketRoutes
from gatewayd.settings.settings_model import Settings

PAGE: Final = Path(__file__).parents[1] / "man" / "gatewayd-api.7"


@dataclass(frozen=True)
class Section:
    """A section of the page: the tags of its rows, and its introduction."""

    title: str
    tags: frozenset[str]
    prose: str


SECTIONS: Final = (
    Section(
        "Monitoring",
        frozenset({"health"}),
        "Health checks answer from memory, so that a probe costs the same under load.",
    ),
    Section(
        "Models",
        frozenset({"models"}),
        "Model lists contain the models that the caller may use. "
        "A model record has the name, parameters and access list that administrators set.",
    ),
    Section(
        "Page",
        frozenset({"page"}),
        "The built-in page, for browsers. "
        "Its views are HTML and answer 404 to a client whose Accept does not name text/html. "
        "The addresses of its files contain a hash of their content.",
    ),
    Section(
        "Documentation",
        frozenset({"documentation"}),
        "These endpoints exist only with the setting env = dev.",
    ),
    Section(
        "Chat completions",
        frozenset({"chat", "embeddings", "forwarding", "responses"}),
        "The bodies are those of the OpenAI API. gatewayd-dialects(7) lists their fields.",
    ),
    Section(
        "Images, audio and moderations",
        frozenset({"media"}),
        "The bodies are those of the OpenAI API and go to the source of the model. "
        "gatewayd-dialects(7), OTHER ENDPOINTS, has the permissions and limits.",
    ),
    Section(
        "Batches",
        frozenset({"batches"}),
        "The bodies are those of the OpenAI API. gatewayd-dialects(7), BATCHES, has the rules and limits.",
    ),
    Section(
        "Outlet filters and actions",
        frozenset({"plugins"}),
        "These endpoints run outlet filters and actions on existing messages.",
    ),
    Section(
        "Model runtimes",
        frozenset({"runtime"}),
        "The gateway forwards these requests to the native API of a runtime, and its answer to the client.",
    ),
    Section(
        "Files",
        frozenset({"files"}),
        "The gateway extracts the text of an uploaded file and indexes it for search. "
        "gatewayd-documents(7) has the details.",
    ),
    Section(
        "Collections",
        frozenset({"knowledge", "retrieval"}),
        "A collection is a set of files with a common access list and search. "
        "gatewayd-documents(7) has the details.",
    ),
    Section("Tasks", frozenset({"tasks"}), "A task is a running answer, or other running work of a model."),
    Section("Events", frozenset({"events"}), "Clients subscribe to events, and external tools emit them."),
    Section(
        "Provisioning",
        frozenset({"scim"}),
        "Identity providers manage accounts and groups by SCIM 2.0. gatewayd-scim(7) has the details.",
    ),
    Section(
        "Sessions and keys",
        frozenset({"auths", "sessions", "invitations", "keys", "admin"}),
        "Users sign in, change their own account and create API keys.",
    ),
    Section(
        "Usage",
        frozenset({"usage"}),
        "What models were used for. gatewayd-operations(7), USAGE AND PRICES, says what is counted.",
    ),
    Section(
        "Limits",
        frozenset({"limits"}),
        "Limits and budgets of model calls. gatewayd-operations(7), LIMITS AND BUDGETS, has the rules.",
    ),
    Section(
        "Providers and status",
        frozenset({"providers", "status"}),
        "Administrators add providers and runtimes to those of gatewayd.toml(5), which stay as they are. "
        "Keys are stored encrypted and shown as asterisks; changes apply at once.",
    ),
    Section(
        "Accounts, groups and permissions",
        frozenset({"users", "permissions", "groups"}),
        "Administrators manage accounts and groups. Users store settings of their own.",
    ),
    Section(
        "Stored chats", frozenset({"chats"}), "A stored chat has a title, a tree of messages and an owner."
    ),
    Section(
        "Folders of chats",
        frozenset({"folders"}),
        "The folders of a user are a tree. A chat is in one folder or in none.",
    ),
    Section(
        "Functions and tools",
        frozenset({"functions", "tools", "tool servers"}),
        "These endpoints install, change and configure plugins. gatewayd-plugins(7) describes them.",
    ),
)
MESSAGES: Final = Section(
    "Messages",
    frozenset({"chat"}),
    "The bodies are those of the Anthropic API. gatewayd-dialects(7) lists their fields.",
)

HEAD: Final = rf""".Dd {__released__}
.Dt GATEWAYD-API 7
.Os
.Sh NAME
.Nm gatewayd-api
.Nd the HTTP endpoints of the chat gateway
.Sh DESCRIPTION
.Xr gatewayd 8
serves the endpoints below.
Each path is also served with a trailing slash.
Each GET endpoint also answers HEAD.
.Pp
A credential is an API key or a session token, in the header
.Ql Authorization: Bearer .
An API key may also be in the header
.Ql x\-api\-key .
.Pp
A body is JSON unless the entry says otherwise.
Fields in brackets may be absent.
A reply named with a capital letter is described in
.Sx REPLIES .
Later releases may add members to objects.
.Pp
The errors of an entry follow from its access, path, parameters and body.
.Sx FAILURES
lists all of them.
.Sh ENDPOINTS
"""

TAIL: Final = r""".Sh SEE ALSO
.Xr gatewayctl 1 ,
.Xr gatewayd.toml 5 ,
.Xr gatewayd-dialects 7 ,
.Xr gatewayd-documents 7 ,
.Xr gatewayd-operations 7 ,
.Xr gatewayd-plugins 7 ,
.Xr gatewayd-scim 7 ,
.Xr gatewayd-signin 7 ,
.Xr gatewayd 8
.Rs
.%A P. Hunt
.%T System for Cross-domain Identity Management: Protocol
.%R RFC 7644
.Re
"""

TYPES: Final = {"string": "text", "array": "list"}
NO_DEFINITIONS: Final[Mapping[str, Any]] = {}
READ_BODIES: Final = {"POST", "PUT", "PATCH"}


def rows() -> Sequence[Route]:
    """Return every row of the public application and of its documentation. Their services are mocks."""
    parts = MagicMock()
    parts.settings = Settings()
    sockets = SocketRoutes(MagicMock(), MagicMock(), MagicMock(), MagicMock())
    listening = StreamingRoutes(EventRoutes(MagicMock(), body_limit=1), sockets, MagicMock())
    found = public_rows(parts, listening)
    return [*found, *DocsRoutes(found, title="gatewayd", version="1").routes()]


def section_of(row: Route) -> Section:
    """Return the section of a row; raises StopIteration for an unknown tag."""
    if row.dialect is RouteDialect.ANTHROPIC:
        return MESSAGES
    return next(section for section in SECTIONS if row.tag in section.tags)


def page() -> str:
    """Return the whole manual page."""
    schemas: dict[str, Any] = {}
    found = rows()
    lines: list[str] = []
    for section in _ordered():
        mine = [row for row in found if section_of(row) is section]
        lines += [f".Ss {section.title}", *prose(section.prose), ".Bl -tag -width Ds"]
        for same in _grouped(mine):
            lines += entry(same, schemas)
        lines.append(".El")
    return HEAD + "\n".join([*lines, *replies(schemas), *errors()]) + "\n" + TAIL


def entry(same: Sequence[Route], schemas: dict[str, Any]) -> Iterator[str]:
    """Yield the entry of an endpoint: paths, access, parameters, body, reply and errors."""
    row = same[0]
    yield f".It Ic {row.method} Pa {shown_path(row)}"
    yield from prose(f"{row.summary}.")
    yield from prose(POLICY[row.access])
    if len(same) > 1:
        yield "Also:"
        yield from _separated([f".Pa {shown_path(other)}" for other in same[1:]])
    for name, sentence in row.query.items():
        yield ".br"
        yield f".Ql ?{name}= :"
        yield from prose(sentence)
    yield from body(row)
    yield ".br"
    yield escape(f"Reply: {answer(row, schemas)}.")
    yield ".br"
    yield escape(f"Errors: {', '.join(map(str, statuses_of(row)))}.")


def shown_path(row: Route) -> str:
    """Return the path of a row without the patterns of its parameters."""
    return PARAMETER_PATTERN.sub(r"{\1}", row.path)


def body(row: Route) -> Iterator[str]:
    """Yield the body of a row: a form, or the fields of its model."""
    if row.use is RequestUse.FORM:
        yield ".br"
        yield "Body: a form (multipart/form-data) with the field model and at least one file."
    elif row.invites and row.tag == "batches":
        yield ".br"
        yield "Body: a form (multipart/form-data) with the part file and the field purpose."
    elif row.invites:
        yield ".br"
        yield "Body: a form (multipart/form-data) with the part file, and optionally metadata, a JSON object."
    elif row.request is not None:
        schema = row.request.model_json_schema()
        definitions = schema.get("$defs", {})
        fields = members_of(schema.get("properties", {}), schema.get("required", ()), definitions)
        yield ".br"
        yield escape(f"Body: {', '.join(fields) or kind(schema, definitions)}.")


def answer(row: Route, schemas: dict[str, Any]) -> str:
    """Return the reply of a success."""
    parts = [str(status) for status in row.statuses]
    if not parts:
        return "none, as every request is refused"
    if set(row.statuses) <= {101, 204}:
        return f"{' or '.join(parts)} without a body"
    media = []
    if row.reply is not None and row.reply.schema is not None:
        media.append(kind(resolved(row.reply.schema, schemas)))
    if row.reply is not None:
        media += ["a body of any type" if name == "*/*" else name for name in row.reply.media_types]
    return f"{' or '.join(parts)}, {' or '.join(media)}"


def kind(schema: Mapping[str, Any], definitions: Mapping[str, Any] = NO_DEFINITIONS) -> str:
    """Return the text for a schema; references to the definitions are resolved."""
    match schema:
        case {"$ref": str(ref)}:
            name = ref.rpartition("/")[2]
            return kind(definitions[name], definitions) if name in definitions else name
        case {"anyOf": list(ways)}:
            return " or ".join(dict.fromkeys(kind(way, definitions) for way in ways))
        case {"const": value}:
            return str(value).lower() if isinstance(value, bool) else f"{value!r}".replace("'", '"')
        case {"enum": list(values)}:
            return " or ".join(map(str, values))
        case {"type": list(names)}:
            return " or ".join(kind({**schema, "type": name}, definitions) for name in names)
        case {"type": "array"}:
            of = kind(schema.get("items", {}), definitions)
            return "list" if of == "anything" else f"list of {of}"
        case {"type": "object", "properties": dict(members)}:
            return f"{{{', '.join(members_of(members, schema.get('required', ()), definitions))}}}"
        case {"type": "object", "additionalProperties": dict(values)} if values:
            return f"object of {kind(values, definitions)}"
        case {"type": str(name)}:
            return TYPES.get(name, name)
        case _:
            return "anything"


def members_of(
    members: Mapping[str, Any], required: Iterable[str], definitions: Mapping[str, Any] = NO_DEFINITIONS
) -> Iterator[str]:
    """Yield each member of an object with its type, optional ones in brackets."""
    always = set(required)
    for name, member in members.items():
        member_text = f"{name} ({kind(member, definitions)})"
        yield member_text if name in always else f"[{member_text}]"


def statuses_of(row: Route) -> Sequence[int]:
    """Return the statuses of the failures of a row.

    They follow from its access, body, path and query parameters.
    """
    found = set()
    if row.access not in {RouteAccess.PUBLIC, RouteAccess.OPTIONAL}:
        found.add(401)
    if row.access in {RouteAccess.VERIFIED, RouteAccess.ADMIN}:
        found.add(403)
    if PARAMETER_PATTERN.search(row.path):
        found.add(404)
    if row.request is not None:
        found |= {400, 413, 415, 422}
    elif row.method in READ_BODIES and row.takes:
        found |= {400, 413, 415}
    if row.query:
        found |= {400, 422} if row.dialect is RouteDialect.NATIVE else {400}
    if row.tag == "scim" and not row.statuses:
        found.add(501)
    return sorted(found | {429, 503})


def replies(schemas: Mapping[str, Any]) -> Iterator[str]:
    """Yield the section REPLIES."""
    yield ".Sh REPLIES"
    yield ".Bl -tag -width Ds"
    for name, schema in sorted(schemas.items()):
        yield f".It Li {name}"
        members = list(members_of(schema.get("properties", {}), schema.get("required", ())))
        if schema.get("additionalProperties") is True:
            members.append("and others")
        if "null" in schema.get("type", ()):
            members.append("or null")
        members = members or [kind(schema)]
        yield from (escape(f"{each},") for each in members[:-1])
        yield escape(f"{members[-1]}.")
    yield ".El"


def errors() -> Iterator[str]:
    """Yield the section FAILURES: the body, and each status with its error kinds."""
    yield ".Sh FAILURES"
    yield "The JSON body of a failure has"
    yield ".Ql detail ,"
    yield "a sentence, and"
    yield ".Ql error ,"
    yield "an object with message, type, param and code."
    yield "Other dialects have their own bodies."
    yield "With status 422 detail is a list that names the field."
    yield "The statuses and their error kinds and codes are:"
    yield ".Bl -tag -width Ds"
    by_status: dict[int, list[str]] = {}
    for known, (status, _, _) in STATUSES.items():
        by_status.setdefault(status, []).append(known.value)
    for code, status in CODE_STATUSES.items():
        by_status.setdefault(status, []).append(code)
    by_status.setdefault(501, []).append("not_implemented")
    for status, names in sorted(by_status.items()):
        yield f".It {status}"
        yield f"{', '.join(names)}"
    yield ".El"


def prose(text: str) -> Iterator[str]:
    """Yield text as mdoc, one sentence a line, with cross references to pages."""
    for sentence in re.split(r"(?<=[.]) +(?=[A-Z])", text):
        for part in re.split(r"((?:gatewayd|gatewayctl)[a-z.-]*\(\d\)[ ,.;]*)", sentence):
            found = re.fullmatch(r"([a-z.-]+)\((\d)\)([ ,.;]*)", part)
            if found:
                yield f".Xr {found[1]} {found[2]} {found[3].strip()}".rstrip()
            elif part.strip():
                yield escape(part.strip())


def escape(text: str) -> str:
    """Return a line of text with escaped control characters of roff."""
    text = text.replace("\\", r"\e")
    return rf"\&{text}" if text.startswith((".", "'")) else text


def _ordered() -> Iterator[Section]:
    for section in SECTIONS:
        yield section
        if section.title == "Chat completions":
            yield MESSAGES


def _grouped(found: Iterable[Route]) -> Iterable[Sequence[Route]]:
    """Return the rows grouped by handler, in the order of the first row of each group."""
    groups: dict[tuple[Any, ...], list[Route]] = {}
    for row in found:
        schema: Schema | None = None if row.reply is None else row.reply.schema
        name = component(schema) if callable(schema) else repr(schema)
        handler = getattr(row.handler, "func", row.handler)
        groups.setdefault((row.method, row.summary, handler.__qualname__, name), []).append(row)
    return groups.values()


def _separated(lines: Sequence[str]) -> Iterator[str]:
    for place, line in enumerate(lines):
        yield line + (" ." if place == len(lines) - 1 else " ,")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stderr.write(f"wrote {PAGE}\n")

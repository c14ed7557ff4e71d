"""The betas of the messages protocol: which parts of a request need which `anthropic-beta`; pure.

A provider refuses a part without its beta, and a beta without its part. Where a beta is left out, because a
setting denies it or the host does not have it, the part goes with it.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Any, Final

from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body

BETA_HEADER: Final = "anthropic-beta"

MAX_BETAS: Final = 100
"""Maximum number of betas of one request; the rest is left out."""

MAX_NESTING: Final = 4
"""Levels of blocks that are searched: a message, a tool result, a document in it, its content."""

_DATE: Final = re.compile(r"-\d{4}-\d{2}-\d{2}\Z|-\d{8}\Z")


@dataclass(frozen=True, slots=True)
class BetaParts:
    """The parts of a request that one beta, or several, belong to; all names are prefixes but of fields.

    `fields` are fields of the request, `config` members of `output_config`, `edits` types of
    `context_management.edits`, `tools` types of tools, `tool_fields` members of tools, `cache` members of
    `cache_control`, `blocks` types of blocks, `roles` roles of messages, `headers` other headers.
    """

    fields: frozenset[str] = frozenset()
    config: frozenset[str] = frozenset()
    edits: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    tool_fields: frozenset[str] = frozenset()
    cache: frozenset[str] = frozenset()
    blocks: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    headers: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Return whether there is any part."""
        return any(getattr(self, item.name) for item in fields(self))

    def __or__(self, other: "BetaParts") -> "BetaParts":
        """Return the parts of both."""
        return self._join(other, frozenset.union)

    def __sub__(self, other: "BetaParts") -> "BetaParts":
        """Return the parts that the other lacks."""
        return self._join(other, frozenset.difference)

    def _join(
        self, other: "BetaParts", join: Callable[[frozenset[str], frozenset[str]], frozenset[str]]
    ) -> "BetaParts":
        names = [item.name for item in fields(self)]
        return BetaParts(**{name: join(getattr(self, name), getattr(other, name)) for name in names})


def _parts(**names: Sequence[str]) -> BetaParts:
    return BetaParts(**{name: frozenset(values) for name, values in names.items()})


_SEARCHED_TOOLS: Final = _parts(
    tools=["tool_search_tool_"], tool_fields=["allowed_callers", "defer_loading", "input_examples"]
)
_FALLBACK: Final = _parts(fields=["fallback_credit_token", "fallbacks"], blocks=["fallback"])

PARTS: Final[Mapping[str, BetaParts]] = {
    "advanced-tool-use": _SEARCHED_TOOLS,
    "advisor-tool": _parts(tools=["advisor_"], blocks=["advisor_tool_result"]),
    "cache-diagnosis": _parts(fields=["diagnostics"]),
    "code-execution": _parts(fields=["container"], tools=["code_execution_"]),
    "code-execution-web-tools": _parts(tools=["web_fetch_20260209", "web_search_20260209"]),
    "compact": _parts(edits=["compact_"], blocks=["compaction"]),
    "computer-use": _parts(tools=["computer_"]),
    "context-management": _parts(fields=["context_management"], edits=["clear_"], tools=["memory_"]),
    "effort": _parts(config=["effort"]),
    "extended-cache-ttl": _parts(cache=["ttl"]),
    "fallback-credit": _FALLBACK,
    "fast-mode": _parts(fields=["speed"]),
    "files-api": _parts(blocks=["container_upload"]),
    "fine-grained-tool-streaming": _parts(tool_fields=["eager_input_streaming"]),
    "mcp-client": _parts(
        fields=["mcp_servers"], tools=["mcp_toolset"], blocks=["mcp_tool_result", "mcp_tool_use"]
    ),
    "mid-conversation-system": _parts(roles=["system"]),
    "mid-conversation-tool-changes": _parts(blocks=["tool_addition", "tool_removal"], roles=["system"]),
    "prompt-caching-scope": _parts(cache=["scope"]),
    "server-side-fallback": _FALLBACK,
    "skills": _parts(fields=["container"]),
    "structured-outputs": _parts(fields=["output_format"], config=["format"], tool_fields=["strict"]),
    "task-budgets": _parts(config=["task_budget"]),
    "tool-search-tool": _SEARCHED_TOOLS,
    "user-profiles": _parts(headers=["anthropic-user-profile-id"]),
    "web-fetch": _parts(tools=["web_fetch_"]),
}
"""Parts by the name of a beta without its date; a beta that is not here is a header only."""


def family_of_beta(beta: str) -> str:
    """Return the name of a beta without its date: `effort` for `effort-2025-11-24`."""
    return _DATE.sub("", beta)


def parse_betas(values: Iterable[str]) -> list[str]:
    """Return the betas of the values of the header, each once, in their order."""
    found: dict[str, None] = {}
    for value in values:
        for name in value.split(","):
            if name.strip() and len(found) < MAX_BETAS:
                found[name.strip()] = None
    return list(found)


def is_denied(name: str, patterns: Collection[str]) -> bool:
    """Return whether a beta or a header is on a deny list; `*` in a pattern stands for any text."""
    return any(fnmatchcase(name, pattern) or family_of_beta(name) == pattern for pattern in patterns)


def denied_parts(patterns: Collection[str]) -> BetaParts:
    """Return the parts of all betas on a deny list, which a request may have without the header."""
    return parts_of(name for name in PARTS if any(_covers(pattern, name) for pattern in patterns))


def _covers(pattern: str, family: str) -> bool:
    """Return whether a pattern is for betas of a family, of all dates or of some."""
    is_dated = pattern.startswith(f"{family}-") and pattern[len(family) + 1 :][:1] in set("0123456789*?[")
    return is_dated or fnmatchcase(family, pattern)


def parts_of(betas: Iterable[str]) -> BetaParts:
    """Return the parts that these betas belong to."""
    found = BetaParts()
    for beta in betas:
        found |= PARTS.get(family_of_beta(beta), BetaParts())
    return found


def without_parts(body: Body, parts: BetaParts) -> tuple[Body, list[str]]:
    """Return a request without these parts, and the names of those that it had.

    The request itself is unchanged. Messages of a role that is left out become messages of the user.
    """
    if not parts:
        return body, []
    found: dict[str, None] = {}
    rest = {name: value for name, value in body.items() if not _is_found(name, parts.fields, found)}
    _drop_members(rest, "output_config", parts.config, found)
    _drop_edits(rest, parts.edits, found)
    _drop_tools(rest, parts, found)
    if parts.cache or parts.blocks or parts.roles:
        for name in ("system", "messages", "tools"):
            if isinstance(rest.get(name), list):
                rest[name] = _cleaned(rest[name], parts, found, MAX_NESTING, name)
    return (rest, list(found)) if found else (body, [])


def _is_found(name: str, names: Collection[str], found: dict[str, None], told: str = "") -> bool:
    if name not in names:
        return False
    found[told or name] = None
    return True


def _starts(kind: object, prefixes: Collection[str]) -> bool:
    text = as_text(kind)
    return bool(text) and text.startswith(tuple(prefixes))


def _drop_members(body: Body, name: str, names: frozenset[str], found: dict[str, None]) -> None:
    given = as_mapping(body.get(name))
    if names.isdisjoint(given):
        return
    kept = {key: value for key, value in given.items() if not _is_found(key, names, found, f"{name}.{key}")}
    if kept:
        body[name] = kept
    else:
        del body[name]


def _drop_edits(body: Body, prefixes: Collection[str], found: dict[str, None]) -> None:
    given = as_mapping(body.get("context_management"))
    edits = as_sequence(given.get("edits"))
    kept = [edit for edit in edits if not _starts(as_mapping(edit).get("type"), prefixes)]
    if len(kept) == len(edits):
        return
    found["context_management.edits"] = None
    if kept:
        body["context_management"] = {**given, "edits": kept}
    else:
        del body["context_management"]


def _drop_tools(body: Body, parts: BetaParts, found: dict[str, None]) -> None:
    tools = body.get("tools")
    if not isinstance(tools, list):
        return
    kept = []
    for tool in tools:
        given = as_mapping(tool)
        if _starts(given.get("type"), parts.tools):
            found[f"tools of type {given['type']!r:.80}"] = None
        elif parts.tool_fields.isdisjoint(given):
            kept.append(tool)
        else:
            kept.append(
                {
                    name: value
                    for name, value in given.items()
                    if not _is_found(name, parts.tool_fields, found, f"{name} of tools")
                }
            )
    if kept:
        body["tools"] = kept
    else:
        for name in ("tools", "tool_choice"):
            body.pop(name, None)


def _cleaned(items: list[Any], parts: BetaParts, found: dict[str, None], depth: int, where: str) -> list[Any]:
    """Return blocks, tools or messages without the parts."""
    kept = []
    for item in items:
        if not isinstance(item, dict):
            kept.append(item)
            continue
        kind = item.get("type")
        if where not in {"messages", "tools"} and _starts(kind, parts.blocks):
            found[f"{as_text(kind):.80} blocks"] = None
            continue
        cleaned = _cleaned_item(item, parts, found, depth, where)
        if where != "messages" or cleaned.get("content") or not item.get("content"):
            kept.append(cleaned)
    return kept


def _cleaned_item(item: Body, parts: BetaParts, found: dict[str, None], depth: int, where: str) -> Body:
    cache = item.get("cache_control")
    if isinstance(cache, dict) and not parts.cache.isdisjoint(cache):
        rest = {
            name: value
            for name, value in cache.items()
            if not _is_found(name, parts.cache, found, f"cache_control.{name}")
        }
        item = {**item, "cache_control": rest}
    if where == "messages" and _is_found(as_text(item.get("role")), parts.roles, found, "role system"):
        item = {**item, "role": "user"}
    for name in ("content", "source"):
        inner = item.get(name)
        if depth and isinstance(inner, list):
            item = {**item, name: _cleaned(inner, parts, found, depth - 1, name)}
        elif depth and isinstance(inner, dict):
            item = {**item, name: _cleaned_item(inner, parts, found, depth - 1, name)}
    return item

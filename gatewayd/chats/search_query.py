"""Parses chat search queries: free text mixed with tokens such as `tag:NAME`."""

from dataclasses import replace
from typing import Final

from gatewayd.chats.folders import name_key
from gatewayd.chats.records import ChatQuery
from gatewayd.chats.tags import tag_id

FLAGS: Final = ("pinned", "archived", "shared")


def read_search(text: str) -> ChatQuery:
    """Parse a text with tokens among its words.

    The tokens are `tag:NAME`, `folder:NAME`, `pinned:true`, `archived:false` and `shared:true`. All
    other words are searched as typed. Archived chats are found only with an `archived:` token.
    """
    query = ChatQuery(archived=False)
    words = []
    for word in text.split():
        found = _with_token(query, word)
        if found is None:
            words.append(word)
        else:
            query = found
    return replace(query, text=" ".join(words))


def _with_token(query: ChatQuery, word: str) -> ChatQuery | None:
    """Return the query with a token applied; None if the word is not a token."""
    name, colon, value = word.partition(":")
    if not colon or not value:
        return None
    if name == "tag":
        return replace(query, tags=(*query.tags, tag_id(value)))
    if name == "folder":
        return replace(query, folder_name=name_key(value))
    switch = {"true": True, "false": False}.get(value.lower())
    if switch is None or name not in FLAGS:
        return None
    match name:
        case "pinned":
            return replace(query, pinned=switch)
        case "archived":
            return replace(query, archived=switch)
        case _:
            return replace(query, shared=switch)

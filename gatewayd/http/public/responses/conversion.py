"""Converts one Responses request to a chat request, and keeps the response that answers it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.completions.call_ids import call_ids_in
from gatewayd.completions.json_access import as_mapping, as_sequence
from gatewayd.completions.records import Body
from gatewayd.dialects.responses.countable import countable
from gatewayd.dialects.responses.envelope import new_response_id, response_id_of
from gatewayd.dialects.responses.fields import optional_text, wrong
from gatewayd.dialects.responses.input_list import with_ids
from gatewayd.dialects.responses.items import InputReader, items_of
from gatewayd.dialects.responses.request import ResponseRequest, parse_request
from gatewayd.dialects.responses.sealed import UserSeal
from gatewayd.dialects.responses.stream import ResponseStream
from gatewayd.dialects.responses.tools import offers_tools
from gatewayd.dialects.token_estimate import count_tokens
from gatewayd.encryption import TextCipher
from gatewayd.errors import ErrorKind, GatewayError, invalid, shorten
from gatewayd.pipeline.records import ChatRequest
from gatewayd.pipeline.responses.archive import PREVIOUS_FIELD, ResponseArchive, StoredResponse
from gatewayd.time_slices import LoopPacer, iterate_paced

MAX_REFERENCED_RESPONSES: Final = 1000
"""Maximum number of stored responses whose items one input may name."""


@dataclass(frozen=True, slots=True)
class PreparedResponse:
    """A request with its chat request, and the response that will answer it.

    `items` are its own input items, empty if they will not be stored, and `context` all items.
    """

    request: ResponseRequest
    chat: ChatRequest
    stream: ResponseStream
    items: list[Any]
    context: list[Any]


class ResponseConversion:
    """Prepares requests, and stores responses."""

    def __init__(
        self,
        archive: ResponseArchive,
        cipher: TextCipher,
        clock: ids.Clock = ids.now,
        new_id: ids.NewId = ids.new_id,
    ) -> None:
        self._archive = archive
        self._cipher = cipher
        self._clock = clock
        self._new_id = new_id

    def seal(self, actor: Actor) -> UserSeal:
        """Return the seal of a user."""
        return UserSeal(self._cipher, actor.user_id)

    async def prepare(self, value: Mapping[str, Any], actor: Actor) -> PreparedResponse:
        """Return a request in the form of the pipeline.

        Raises invalid_request with the name of a bad field, with the code previous_response_not_found for a
        conversation, and not_found for an item, that the actor does not have.
        """
        seal = self.seal(actor)
        own = await self.resolved(items_of(value), actor)
        history = await self._history(value, actor)
        asked = parse_request(value, await _offers((*history, *own)))
        reader = InputReader(asked.names, seal, asked.left_out)
        pace = LoopPacer()
        for items in (history, own):
            for index, item in enumerate(items):
                reader.add(item, f"input[{index}]")
                await pace.turn()
        chat = asked.chat_request([*asked.head_messages(), *reader.finish()], reader.files)
        if asked.is_stored and not self._archive.is_on:
            asked.is_stored, asked.echo["store"] = False, False
            if value.get("store") is True:
                chat.warnings.append("cannot store the response: the gateway keeps none")
        response_id = new_response_id(self._new_id)
        stream = ResponseStream(
            asked,
            response_id,
            seal,
            self._new_id,
            self._clock,
            lambda: count_tokens(countable(chat.body)),
            used_ids=call_ids_in(chat.body),
        )
        kept = await iterate_paced(with_ids(response_id, own)) if asked.is_stored else ()
        return PreparedResponse(asked, chat, stream, list(kept), [*history, *own])

    async def resolved(self, items: Sequence[Any], actor: Actor, *, keeps_foreign: bool = False) -> list[Any]:
        """Return items with the stored ones in place of references to them; raises not_found.

        With `keeps_foreign` references to items of a provider stay. Raises invalid_request for two references
        to one stored item, as OpenAI does: many to a large one would make a request of any size.
        """
        if not any(_is_reference(item) for item in items):
            return list(items)
        named: set[str] = set()
        known: dict[str, dict[str, Body]] = {}
        made: list[Any] = []
        pace = LoopPacer()
        for index, item in enumerate(items):
            if _is_reference(item) and not (keeps_foreign and response_id_of(item.get("id")) is None):
                found = await self._referenced(item.get("id"), f"input[{index}]", actor, known)
                if found["id"] in named:
                    raise _repeated(found["id"], f"input[{index}]")
                named.add(found["id"])
                made.append(found)
            else:
                made.append(item)
            await pace.turn()
        return made

    async def keep(self, prepared: PreparedResponse, actor: Actor, request_id: str) -> bool:
        """Store a finished response if its request wants that; return whether it is stored."""
        if not prepared.request.is_stored or prepared.stream.response["status"] == "failed":
            return False
        return await self._archive.keep(self.record(prepared, actor), request_id)

    def record(self, prepared: PreparedResponse, actor: Actor) -> StoredResponse:
        """Return a response as it is stored now."""
        asked, stream = prepared.request, prepared.stream
        response = {**stream.response, "store": True, "output": stream.kept_output}
        return StoredResponse(
            id=stream.response["id"],
            user_id=actor.user_id,
            model=asked.model,
            response=response,
            input=prepared.items,
            created_at=stream.response["created_at"],
            expires_at=self._archive.expiry(),
            previous_id=asked.previous_id,
            pieces=stream.events.pieces,
            pings=stream.events.pings,
        )

    async def _history(self, value: Mapping[str, Any], actor: Actor) -> list[Any]:
        """Return the items of the conversation that a request continues, which lack its instructions."""
        previous = optional_text(value, PREVIOUS_FIELD)
        if previous is None:
            return []
        chain = await self._archive.history(previous, actor.user_id)
        return [item for each in chain for item in (*each.input, *as_sequence(each.response.get("output")))]

    async def _referenced(
        self, item_id: object, where: str, actor: Actor, known: dict[str, dict[str, Body]]
    ) -> Body:
        if not isinstance(item_id, str):
            raise wrong(f"{where}.id", "text")
        response_id = response_id_of(item_id)
        if response_id is not None and response_id not in known:
            if len(known) >= MAX_REFERENCED_RESPONSES:
                raise invalid(
                    f"cannot use input: it names items of over {MAX_REFERENCED_RESPONSES} responses",
                    param="input",
                )
            stored = await self._archive.find_own(response_id, actor.user_id)
            known[response_id] = {} if stored is None else _items_by_id(stored)
        found = known.get(response_id or "", {}).get(item_id)
        if found is None:
            raise GatewayError(ErrorKind.NOT_FOUND, f"cannot find item {shorten(item_id)!r}", param=where)
        return found


async def _offers(items: Sequence[Any]) -> list[Body]:
    """Return the items that offer tools, without those that offer the same ones again."""
    found: dict[str, Body] = {}
    pace = LoopPacer()
    for item in items:
        if offers_tools(item):
            content = ids.digest(orjson.dumps(item.get("tools")).decode())
            found.pop(content, None)
            found[content] = item
            await pace.turn()
    return list(found.values())


def _items_by_id(stored: StoredResponse) -> dict[str, Body]:
    items = (*stored.input, *as_sequence(stored.response.get("output")))
    return {item["id"]: item for item in items if isinstance(item, dict) and isinstance(item.get("id"), str)}


def _is_reference(item: object) -> bool:
    known = as_mapping(item)
    kind = known.get("type")
    return kind == "item_reference" or (not kind and "id" in known and "role" not in known)


def _repeated(item_id: str, where: str) -> GatewayError:
    return invalid(f"cannot accept {where}: the input names item {shorten(item_id)!r} twice", param=where)

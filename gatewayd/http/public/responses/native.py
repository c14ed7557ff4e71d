"""Forwards requests of the Responses protocol to sources that speak it."""

from collections.abc import Mapping
from typing import Any, Final

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.catalog.failover import MISSING_ENDPOINT_CODE
from gatewayd.catalog.interfaces import ForwardedAnswer
from gatewayd.completions.json_access import as_mapping, as_sequence
from gatewayd.completions.records import Body
from gatewayd.completions.refusal_reasons import RefusalReason, reason_of
from gatewayd.dialects.responses.envelope import is_own_response_id, response_id_of
from gatewayd.dialects.responses.fields import LeftOutParts
from gatewayd.dialects.responses.items import InputReader, items_of
from gatewayd.dialects.responses.sealed import is_sealed
from gatewayd.dialects.responses.tools import ToolNames
from gatewayd.errors import GatewayError
from gatewayd.http.public.responses.conversion import ResponseConversion
from gatewayd.pipeline.filters.inputs import RequestCaller
from gatewayd.pipeline.passthrough import ForwardedTo, RequestForwarder
from gatewayd.pipeline.responses.archive import PREVIOUS_FIELD, ResponseArchive, StoredResponse
from gatewayd.pipeline.responses.pending_usage import pending_body
from gatewayd.pipeline.responses.router import ResponseRouter
from gatewayd.time_slices import LoopPacer

PATH: Final = "/responses"


class NativeResponses:
    """Forwards what needs no conversion, with the gateway's own responses and items written out."""

    def __init__(
        self,
        router: ResponseRouter,
        forwarding: RequestForwarder,
        archive: ResponseArchive,
        conversion: ResponseConversion,
        clock: ids.Clock = ids.now,
    ) -> None:
        self._router = router
        self._forwarding = forwarding
        self._archive = archive
        self._conversion = conversion
        self._clock = clock

    async def is_native(self, body: Mapping[str, Any], actor: Actor, below: str = "") -> bool:
        """Return True if a source may answer the request itself; raises not_found for an unknown model."""
        return await self._router.is_native(body, actor, PATH + below)

    async def pass_on(
        self, body: Mapping[str, Any], caller: RequestCaller, below: str = ""
    ) -> ForwardedAnswer | None:
        """Return the reply of a source that speaks the protocol; None if the request must be converted.

        `below` is the path of the endpoint below `/responses`.
        """
        if not await self.is_native(body, caller.actor, below):
            return None
        sent = await self._written_out(body, caller.actor)
        if below:
            sent.pop("stream", None)

        async def note(place: ForwardedTo, response_id: str, status: str) -> None:
            now = self._clock()
            stored = StoredResponse(
                id=response_id,
                user_id=caller.actor.user_id,
                model=place.model,
                response=pending_body(place.call, status, now),
                input=[],
                created_at=now,
                expires_at=self._archive.expiry(),
                source=place.source,
            )
            await self._archive.keep(stored, caller.request_id)

        noted = note if not below and body.get("store") is not False else None
        try:
            return await self._forwarding.run(PATH, sent, caller, below=below, note=noted)
        except GatewayError as error:
            is_model = reason_of(error.provider_code) is RefusalReason.UNKNOWN_MODEL
            if error.code != MISSING_ENDPOINT_CODE and not is_model:
                raise
            # Some models of a source with the endpoint are for chats only.
            return None

    async def _written_out(self, body: Mapping[str, Any], actor: Actor) -> Body:
        """Return a request without what only the gateway can read.

        A conversation and items that the gateway stores are written out. Reasoning that it encrypted is left
        out, and a summary of its own becomes a message.
        """
        sent = dict(body)
        previous = body.get(PREVIOUS_FIELD)
        history: list[Any] = []
        if isinstance(previous, str) and is_own_response_id(previous):
            stored = await self._archive.find_own(previous, actor.user_id)
            if stored is not None and not stored.source:
                chain = await self._archive.history(previous, actor.user_id)
                history = [
                    item for each in chain for item in (*each.input, *as_sequence(each.response["output"]))
                ]
                del sent[PREVIOUS_FIELD]
        given = body.get("input")
        if not history and not (isinstance(given, list) and any(map(_is_own, given))):
            return sent
        made: list[Any] = []
        pace = LoopPacer()
        own = await self._conversion.resolved(items_of(body), actor, keeps_foreign=True)
        for item in (*history, *own):
            made += self._rewritten(item, actor)
            await pace.turn()
        sent["input"] = made
        return sent

    def _rewritten(self, item: Any, actor: Actor) -> list[Any]:
        known = as_mapping(item)
        if known.get("type") == "compaction" and is_sealed(known.get("encrypted_content")):
            reader = InputReader(ToolNames(), self._conversion.seal(actor), LeftOutParts())
            reader.add(dict(known), "input")
            return list(reader.finish())
        if known.get("type") == "reasoning" and _is_own(item):
            return []
        if response_id_of(known.get("id")) is None:
            return [item]
        return [{name: value for name, value in known.items() if name != "id"}]


def _is_own(item: object) -> bool:
    """Return True if only the gateway can read an item, or find it by its id."""
    known = as_mapping(item)
    return is_sealed(known.get("encrypted_content")) or response_id_of(known.get("id")) is not None

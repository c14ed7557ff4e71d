"""Shortens a conversation: its user messages, and a summary of all else by the model."""

from collections.abc import Mapping
from typing import Any, Final

from gatewayd import ids
from gatewayd.completions.deltas import message_of, text_of, usage_of
from gatewayd.completions.json_access import as_mapping
from gatewayd.completions.records import Body
from gatewayd.dialects.responses.countable import countable
from gatewayd.dialects.responses.envelope import item_id, new_response_id, render_usage
from gatewayd.dialects.responses.input_list import listed_item, with_ids
from gatewayd.dialects.token_estimate import count_tokens
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.public.responses.conversion import ResponseConversion
from gatewayd.pipeline.filters.inputs import RequestCaller
from gatewayd.pipeline.pipeline import Pipeline
from gatewayd.pipeline.records import ChatAnswer

KIND: Final = "compaction"

SUMMARY_PROMPT: Final = (
    "Summarise this conversation so that another assistant can continue it without seeing it. State the goal"
    " of the user, the decisions and facts that matter, the results of tools, the state of the work and what"
    " remains to do. Write only the summary."
)
"""Last message of the request that makes a summary."""

_TOOL_FIELDS: Final = ("tools", "tool_choice", "parallel_tool_calls", "response_format")


class ResponseCompaction:
    """Makes compactions with the model of the request."""

    def __init__(
        self,
        pipeline: Pipeline,
        conversion: ResponseConversion,
        clock: ids.Clock = ids.now,
        new_id: ids.NewId = ids.new_id,
    ) -> None:
        self._pipeline = pipeline
        self._conversion = conversion
        self._clock = clock
        self._new_id = new_id

    async def run(self, value: Mapping[str, Any], caller: RequestCaller) -> tuple[Body, ChatAnswer]:
        """Return the compaction and the answer with the summary; raises the errors of the pipeline."""
        asked = {name: field for name, field in value.items() if name != "stream"}
        prepared = await self._conversion.prepare(asked, caller.actor)
        chat = prepared.chat
        for name in _TOOL_FIELDS:
            chat.body.pop(name, None)
        chat.body["messages"] = [*chat.body["messages"], {"role": "user", "content": SUMMARY_PROMPT}]
        chat.request_id, chat.facts = caller.request_id, caller.facts
        answer = await self._pipeline.run(chat, caller.actor)
        completion = {} if answer.completion is None else answer.completion.body
        summary = text_of(message_of(completion))
        sealed = self._conversion.seal(caller.actor).close(KIND, {"summary": summary})
        if not summary.strip() or sealed is None:
            raise GatewayError(
                ErrorKind.UPSTREAM_FAILED, "cannot shorten the conversation: the model gave no usable summary"
            )
        response_id = new_response_id(self._new_id)
        users = [item for item in prepared.context if as_mapping(item).get("role") == "user"]
        output = [listed_item(item) for item in with_ids(response_id, users)]
        output.append({"id": item_id(response_id, KIND, 0), "type": KIND, "encrypted_content": sealed})
        usage = usage_of(completion)
        estimate = 0 if usage else count_tokens(countable(chat.body))
        return {
            "id": response_id,
            "object": "response.compaction",
            "created_at": self._clock(),
            "output": output,
            "usage": render_usage(usage, estimate, len(summary)),
        }, answer

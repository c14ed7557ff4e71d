"""The beginning of chat requests on the fast path, in the dialect of their caller."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from aiohttp import web

from gatewayd.accounts.records import Actor
from gatewayd.http import body
from gatewayd.http.public.completions.begun_reply import BegunReply
from gatewayd.http.public.completions.begun_stream import BegunStreamReply
from gatewayd.http.responses.frames import FrameRenderer
from gatewayd.http.responses.repeatable import RepeatableAnswers
from gatewayd.http.responses.streams import AnswerStreams
from gatewayd.http.routes import RouteDialect
from gatewayd.json_decoder import LARGE_LIMITS
from gatewayd.pipeline.begun_stream import BegunChatStream
from gatewayd.pipeline.fast_path import ChatConversion, FastChats
from gatewayd.pipeline.records import ChatAnswer, ChatRequest


@dataclass(frozen=True, slots=True)
class ChatBeginning:
    """Begins the chat requests of a dialect, with the functions of its handler."""

    chats: FastChats
    streams: AnswerStreams
    repeatable: RepeatableAnswers | None
    body_limit: int
    dialect: RouteDialect
    parse: Callable[[web.Request, dict[str, Any]], ChatRequest]
    frames: Callable[[ChatRequest, ChatAnswer], FrameRenderer]
    conversion: ChatConversion | None = None

    def begin(
        self, request: web.Request, data: bytes, caller: Actor, arrived: Callable[[], None]
    ) -> BegunReply | BegunStreamReply | None:
        """Begin a request as `routes.FastHandler` does."""
        if len(data) > self.body_limit or (self.repeatable is not None and self.repeatable.wants(request)):
            return None
        value = body.read_at_once(data, LARGE_LIMITS)
        if value is None:
            return None
        chat = self.parse(request, value)
        if chat.stream and self.streams.is_stopped:
            return None
        begun = self.chats.begin(chat, caller, arrived, self.conversion)
        if isinstance(begun, BegunChatStream):
            frames = partial(self.frames, chat)
            return BegunStreamReply(request, begun, self.streams, frames, self.dialect, arrived)
        return None if begun is None else BegunReply(begun, self.dialect)

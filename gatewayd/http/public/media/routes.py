"""Routes of images, audio and moderations in the OpenAI dialect."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from aiohttp import web

from gatewayd.errors import invalid
from gatewayd.http import body
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import caller_of
from gatewayd.http.media_forms import read_media_form
from gatewayd.http.public.completions.passthrough import open_forwarded, send_opened
from gatewayd.http.responses.streams import AnswerStreams, OpenAiFrames
from gatewayd.http.routes import BASES, FORM_BODY, Handler, Route, RouteAccess, RouteDialect, answer_row
from gatewayd.http.schemas import ANY_MEDIA_TYPE, EVENT_STREAM, OBJECT, answers
from gatewayd.json_decoder import LARGE_LIMITS
from gatewayd.pipeline.media.endpoints import (
    IMAGE_EDIT,
    IMAGE_GENERATION,
    MODERATION,
    SPEECH,
    TRANSCRIPTION,
    TRANSLATION,
    MediaEndpoint,
)
from gatewayd.pipeline.media.service import MediaService

DEFAULT_MODERATION: Final = "omni-moderation-latest"
"""Model of moderations that name none, as at OpenAI."""

TAG: Final = "media"

_row = partial(answer_row, dialect=RouteDialect.OPENAI, tag=TAG)


class MediaRoutes:
    """Routes whose requests go to the source of their model, and whose answers are streamed.

    `folder` holds the files of forms whose fields decide where they go and stand behind the files.
    """

    def __init__(
        self,
        media: MediaService,
        *,
        body_limit: int,
        file_limit: int,
        folder: Path,
        streams: AnswerStreams | None = None,
    ) -> None:
        self._media = media
        self._body_limit = body_limit
        self._file_limit = file_limit
        self._folder = folder
        self._streams = streams or AnswerStreams()

    def routes(self) -> Sequence[Route]:
        """Return the rows for each base path."""
        return [
            row
            for base in BASES
            for row in (
                _row(f"{base}/images/generations", self.generate_images, "Make images from a text"),
                _form_row(f"{base}/images/edits", self.edit_images, "Make images from other images"),
                _row(f"{base}/audio/speech", self.speak, "Speak a text"),
                _form_row(f"{base}/audio/transcriptions", self.transcribe, "Write down speech"),
                _form_row(f"{base}/audio/translations", self.translate, "Write down speech in English"),
                _row(f"{base}/moderations", self.moderate, "Check texts for harmful content"),
            )
        ]

    @answers(OBJECT, EVENT_STREAM)
    async def generate_images(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"model", "prompt", ...}` with the images of the source, with `stream` as events."""
        return await self._send_json(request, IMAGE_GENERATION)

    @answers(OBJECT, EVENT_STREAM)
    async def edit_images(self, request: web.Request) -> web.StreamResponse:
        """Answer a form with `model`, `prompt` and files `image` or `image[]`, as `generate_images` does."""
        return await self._send_form(request, IMAGE_EDIT, "image")

    @answers(None, ANY_MEDIA_TYPE)
    async def speak(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"model", "input", "voice", ...}` with audio while it arrives, or with its events."""
        return await self._send_json(request, SPEECH)

    @answers(OBJECT, ANY_MEDIA_TYPE)
    async def transcribe(self, request: web.Request) -> web.StreamResponse:
        """Answer a form with `model` and `file` with the transcript in the `response_format`."""
        return await self._send_form(request, TRANSCRIPTION, "file")

    @answers(OBJECT, ANY_MEDIA_TYPE)
    async def translate(self, request: web.Request) -> web.StreamResponse:
        """Answer a form with `model` and `file` with an English transcript."""
        return await self._send_form(request, TRANSLATION, "file")

    @answers(OBJECT)
    async def moderate(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"input", "model"?}` with the results of the source; the model is
        omni-moderation-latest by default."""
        return await self._send_json(request, MODERATION, model=DEFAULT_MODERATION)

    async def _send_json(
        self, request: web.Request, endpoint: MediaEndpoint, **defaults: str
    ) -> web.StreamResponse:
        asked = await body.read_object(request, self._body_limit, LARGE_LIMITS)
        name = endpoint.fields[0]
        if not asked.get(name) or not isinstance(asked[name], str | list):
            raise invalid(f"cannot accept {name}: expected a text", param=name)
        caller = caller_of(request)
        opening = open_forwarded(self._media.run(endpoint, {**defaults, **asked}, caller), caller)
        if asked.get("stream") is not True:
            return await send_opened(request, await opening)
        return await self._streams.begin(request, opening, OpenAiFrames(), partial(send_opened, request))

    async def _send_form(
        self, request: web.Request, endpoint: MediaEndpoint, file: str
    ) -> web.StreamResponse:
        caller = caller_of(request)
        await self._media.check(endpoint, {}, caller)
        form = await read_media_form(request, self._file_limit, file)
        try:
            if not await self._media.check(endpoint, form.body(), caller):
                await form.spool(self._folder)
            asked = self._media.run(endpoint, form.body(), caller, form.content)
            return await send_opened(request, await open_forwarded(asked, caller))
        finally:
            await form.close()


def _form_row(path: str, handler: Handler, summary: str) -> Route:
    return Route(
        "POST",
        path,
        handler,
        RouteAccess.VERIFIED,
        summary,
        dialect=RouteDialect.OPENAI,
        tag=TAG,
        interruptible=True,
        invites=True,
        takes=FORM_BODY,
        use=RequestUse.FORM,
    )

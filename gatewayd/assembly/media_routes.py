"""The rows of images, audio and moderations."""

from collections.abc import Sequence

from gatewayd.assembly.services import GatewayServices
from gatewayd.http.public.media.routes import MediaRoutes
from gatewayd.http.responses.streams import AnswerStreams
from gatewayd.http.routes import Route
from gatewayd.pipeline.media.service import MediaService


def media_rows(services: GatewayServices, streams: AnswerStreams) -> Sequence[Route]:
    """Return the rows of images, audio and moderations."""
    settings = services.settings
    return MediaRoutes(
        MediaService(services.catalog, services.extensions.filters),
        body_limit=settings.request_body_limit,
        file_limit=settings.rag_file_max_size,
        folder=settings.data_dir,
        streams=streams,
    ).routes()

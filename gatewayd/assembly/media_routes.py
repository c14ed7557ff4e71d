"""The rows of images, audio, moderations and reranking, and the reranker as a model."""

from collections.abc import Sequence

from gatewayd.assembly.services import GatewayServices
from gatewayd.catalog.interfaces import ModelSource
from gatewayd.http.public.media.rerank import RerankRoutes
from gatewayd.http.public.media.routes import MediaRoutes
from gatewayd.http.responses.streams import AnswerStreams
from gatewayd.http.routes import Route
from gatewayd.knowledge.interfaces import Reranker
from gatewayd.knowledge.reranker_source import RerankerSource
from gatewayd.pipeline.media.rerank import RerankService
from gatewayd.pipeline.media.service import MediaService
from gatewayd.settings import Settings


def media_rows(services: GatewayServices, streams: AnswerStreams) -> Sequence[Route]:
    """Return the rows of images, audio, moderations and reranking."""
    settings, filters = services.settings, services.extensions.filters
    media = MediaRoutes(
        MediaService(services.catalog, filters),
        body_limit=settings.request_body_limit,
        file_limit=settings.rag_file_max_size,
        folder=settings.data_dir,
        streams=streams,
    )
    rerank = RerankRoutes(RerankService(services.catalog, filters), body_limit=settings.request_body_limit)
    return [*media.routes(), *rerank.routes()]


def reranker_sources(settings: Settings, reranker: Reranker | None) -> Sequence[ModelSource]:
    """Return the source over the configured reranker, if there is one."""
    return () if reranker is None else (RerankerSource(reranker, settings.rag_reranking_model),)

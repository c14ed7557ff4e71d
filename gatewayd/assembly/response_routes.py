"""The routes of legacy completions and of the Responses protocol."""

from collections.abc import Sequence

from gatewayd.assembly.resumption import ResumptionEdges
from gatewayd.assembly.services import GatewayServices
from gatewayd.http.public.completions.passthrough import ForwardingRoutes
from gatewayd.http.public.responses.background import BackgroundResponses
from gatewayd.http.public.responses.compaction import ResponseCompaction
from gatewayd.http.public.responses.conversion import ResponseConversion
from gatewayd.http.public.responses.native import NativeResponses
from gatewayd.http.public.responses.routes import ResponseRoutes, ResponseServices
from gatewayd.http.public.responses.stored import StoredResponseRoutes
from gatewayd.http.responses.streams import AnswerStreams
from gatewayd.http.routes import Route
from gatewayd.pipeline.local_counts import LocalCounts
from gatewayd.pipeline.passthrough import RequestForwarder, StoredForwarder
from gatewayd.pipeline.responses.pending_usage import BackgroundUsage
from gatewayd.pipeline.responses.router import MissingEndpoints, ResponseRouter


def public_response_rows(
    services: GatewayServices, streams: AnswerStreams, again: ResumptionEdges, counts: LocalCounts
) -> Sequence[Route]:
    """Return the rows of completions and responses, forwarded and converted."""
    settings, catalog, archive = services.settings, services.catalog, services.answering.responses
    missing = MissingEndpoints()
    forwarding = RequestForwarder(
        catalog, services.extensions.filters, services.answering.response_ids, missing
    )
    conversion = ResponseConversion(archive, services.answering.response_cipher)
    background = BackgroundResponses(archive, again.resumable)
    response_services = ResponseServices(
        services.pipeline,
        NativeResponses(ResponseRouter(catalog, missing), forwarding, archive, conversion),
        conversion,
        ResponseCompaction(services.pipeline, conversion),
        background,
        catalog,
        counts,
    )
    stored = StoredForwarder(catalog, BackgroundUsage(archive, catalog.meter, services.tasks))
    limit = settings.request_body_limit
    return [
        *ForwardingRoutes(forwarding, body_limit=limit, streams=streams).routes(),
        *ResponseRoutes(
            response_services, body_limit=limit, streams=streams, repeatable=again.repeatable
        ).routes(),
        *StoredResponseRoutes(archive, stored, background).routes(),
    ]

"""The handlers of the control socket are those of the route table."""

import pytest
from aiohttp import web

from gatewayctl.wire import routes
from gatewayctl.wire.base import Reply
from gatewayctl.wire.endpoint import Endpoint, NoBody
from gatewayd.http.control.batches import ControlBatchRoutes
from gatewayd.http.control.rows import check_complete, serve
from gatewayd.http.routes import Route
from gatewayd.pipeline.pipeline import NoFilters, NoTools, Pipeline
from tests.fakes.daemons.control_socket import Control, rows
from tests.fakes.documents.no_documents import NoAttachments


async def handle(_: web.Request) -> web.StreamResponse:
    return web.Response()


def complete() -> list[Route]:
    return [serve(endpoint, handle) for endpoint in routes.ENDPOINTS]


def test_each_endpoint_has_a_handler(control: Control) -> None:
    pipeline = Pipeline(control.catalog, NoFilters(), NoAttachments(), NoTools())
    # tests/blackbox/test_batches.py has batches on the socket of a daemon.
    batches = ControlBatchRoutes.routes(ControlBatchRoutes.__new__(ControlBatchRoutes))
    served = [*rows(control, pipeline), *batches]
    assert check_complete(served) == served


def test_an_endpoint_without_a_handler_is_refused() -> None:
    served = [row for row in complete() if row.path != routes.GET_QUEUE.path]
    with pytest.raises(RuntimeError, match=r"^cannot serve the control API: no handler for GET /v1/queue$"):
        check_complete(served)


def test_a_handler_outside_the_table_is_refused() -> None:
    other = Endpoint("GET", "/v1/other", NoBody, Reply, "Show something else")
    with pytest.raises(RuntimeError, match=r"gatewayctl\.wire\.routes lacks GET /v1/other$"):
        check_complete([*complete(), serve(other, handle)])


def test_two_handlers_of_one_endpoint_are_refused() -> None:
    with pytest.raises(RuntimeError, match="two handlers for GET /v1/queue"):
        check_complete([*complete(), serve(routes.GET_QUEUE, handle)])

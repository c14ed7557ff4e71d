"""The rows of batches and their files; `tests.blackbox.test_batches` asks each of them."""

from tests.fakes.http.samples import Row

BATCH_BASES = ("/v1", "/openai/v1")
MESSAGE_BATCHES = ("/v1/messages/batches", "/api/v1/messages/batches")

LIST_ROWS: tuple[Row, ...] = (
    *(("GET", base + path) for base in BATCH_BASES for path in ("/files", "/batches")),
    *(("GET", path) for path in MESSAGE_BATCHES),
)
CREATE_ROWS: tuple[Row, ...] = (
    *(("POST", base + path) for base in BATCH_BASES for path in ("/files", "/batches")),
    *(("POST", path) for path in MESSAGE_BATCHES),
)
ID_ROWS: tuple[Row, ...] = tuple(
    (method, path)
    for base in BATCH_BASES
    for method, path in (
        ("GET", f"{base}/files/{{id}}"),
        ("GET", f"{base}/files/{{id}}/content"),
        ("DELETE", f"{base}/files/{{id}}"),
        ("GET", f"{base}/batches/{{id}}"),
        ("POST", f"{base}/batches/{{id}}/cancel"),
    )
) + tuple(
    (method, path + end)
    for path in MESSAGE_BATCHES
    for method, end in (
        ("GET", "/{id}"),
        ("DELETE", "/{id}"),
        ("POST", "/{id}/cancel"),
        ("GET", "/{id}/results"),
    )
)
BATCH_ROWS: frozenset[Row] = frozenset((*LIST_ROWS, *CREATE_ROWS, *ID_ROWS))

"""A daemon with its files in a bucket: stored, processed, read in ranges, removed, refused at the start."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import missing
from tests.fakes.daemons.daemon import Daemon, environment, run_daemon, running_daemon
from tests.fakes.storage.object_servers import BUCKET, PROGRAMS, ObjectServer, find_server, object_server

NAME, PASSWORD = "ada@example.org", "a long enough password"
TEXT = b"The heron stands at the pond. " * 20
LARGE = b"0123456789abcdef" * (1 << 20)
BOUNDARY = "boundary-of-the-form"


@pytest.fixture(params=["moto", "nanio"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ObjectServer]:
    if find_server(request.param) is None:
        missing(
            PROGRAMS[request.param],
            "install moto[s3], flask, flask-cors and nanio, and name their directory of programs",
        )
    with object_server(request.param, tmp_path / request.param) as made:
        yield made


def settings_of(server: ObjectServer, bucket: str = BUCKET) -> dict[str, str]:
    return {
        "FILE_STORE": f"s3://{bucket}/gateway",
        "FILE_STORE_ENDPOINT": server.endpoint,
        "FILE_STORE_REGION": "us-east-1",
        "FILE_STORE_ACCESS_KEY": "key",
        "FILE_STORE_SECRET_KEY": "secret",
    }


def form(name: str, data: bytes) -> bytes:
    head = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
        "Content-Type: text/plain\r\n\r\n"
    )
    return head.encode() + data + f"\r\n--{BOUNDARY}--\r\n".encode()


def send(
    daemon: Daemon, method: str, path: str, token: str, data: bytes | None = None, **headers: str
) -> Any:
    request = urllib.request.Request(daemon.base_url + path, data=data, method=method)
    request.add_header("Authorization", f"Bearer {token}")
    if data is not None:
        request.add_header("Content-Type", f"multipart/form-data; boundary={BOUNDARY}")
    for name, value in headers.items():
        request.add_header(name, value)
    with urllib.request.urlopen(request, timeout=60) as reply:
        return reply.status, reply.read(), reply.headers


def test_files_live_in_the_bucket_alone(tmp_path: Path, server: ObjectServer) -> None:
    state = tmp_path / "state"
    with running_daemon(state, **settings_of(server)) as daemon:
        body = {"name": "Ada", "email": NAME, "password": PASSWORD}
        status, made = daemon.call("POST", "/api/v1/auths/signup", body)
        assert status == 200, made
        token = made["token"]
        path = "/api/v1/files/?process_in_background=false"
        _, answer, _ = send(daemon, "POST", path, token, form("heron.txt", TEXT))
        file = json.loads(answer)
        assert file["data"]["status"] == "completed", file
        _, answer, _ = send(daemon, "POST", "/api/v1/files/?process=false", token, form("large.bin", LARGE))
        large = f"/api/v1/files/{json.loads(answer)['id']}/content"
        assert send(daemon, "GET", large, token)[1] == LARGE
        assert not (state / "files").exists()
        content = f"/api/v1/files/{file['id']}/content"
        status, data, headers = send(daemon, "GET", content, token)
        assert (status, data) == (200, TEXT)
        status, data, _ = send(
            daemon, "GET", content, token, Range="bytes=4-8", **{"If-Range": headers["ETag"]}
        )
        assert (status, data) == (206, b"heron")
        # The bytes are those of the bucket, whichever daemon asks.
        assert list((state / "copies").iterdir()) == []
        given = environment(state, 0, settings_of(server))
        backup = daemon.run_ctl("backup", "create", env=given)
        assert backup.returncode == 0, backup.stderr
        assert daemon.run_ctl("backup", "verify", "latest", env=given).returncode == 0
        assert daemon.run_ctl("gc", "--dry-run").returncode == 0
        doctor = daemon.run_ctl("doctor", env=given)
        assert "file-lost" not in doctor.stdout, doctor.stdout
        status, _, _ = send(daemon, "DELETE", f"/api/v1/files/{file['id']}", token)
        assert status == 200


def test_a_bucket_that_is_not_there_is_refused_at_the_start(tmp_path: Path, server: ObjectServer) -> None:
    ended = run_daemon(tmp_path / "state", **settings_of(server, "no-such-bucket"))
    assert ended.returncode != 0
    sentence = "cannot use file_store s3://no-such-bucket/gateway: there is no such bucket"
    assert sentence in str(ended.stdout) + str(ended.stderr)

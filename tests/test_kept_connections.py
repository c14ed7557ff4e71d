"""The kept connections of the tests: used again, replaced when they have ended, and no request sent twice."""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.fakes.http.raw_http import Kept

ANSWER = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno"
LAST = ANSWER.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")


class Server:
    """Answers the requests of each connection with the next of what it is told, then ends the connection."""

    def __init__(self, *connections: list[bytes]) -> None:
        self.heard: list[list[bytes]] = []
        self.ended = [threading.Event() for _ in connections]
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, args=(connections,))
        self._thread.start()

    def _serve(self, connections: tuple[list[bytes], ...]) -> None:
        for answers, ended in zip(connections, self.ended, strict=True):
            with self._listening.accept()[0] as channel:
                self.heard.append([])
                for answer in answers:
                    self.heard[-1].append(channel.recv(65536).split(b" ")[1])
                    channel.sendall(answer)
            ended.set()

    def close(self) -> None:
        self._thread.join(10)
        self._listening.close()


@pytest.fixture
def served(request: pytest.FixtureRequest) -> Iterator[tuple[Server, Kept]]:
    with closing(Server(*request.param)) as server, closing(Kept(server.url)) as kept:
        yield server, kept


@pytest.mark.parametrize("served", [([ANSWER] * 3, [LAST], [ANSWER])], indirect=True)
def test_a_connection_is_used_until_the_server_ends_it(served: tuple[Server, Kept]) -> None:
    server, kept = served
    for number in range(3):
        assert kept.send("GET", f"/{number}").status == 400
    server.ended[0].wait(10)
    assert kept.send("GET", "/3").body == b"no"
    assert kept.send("GET", "/4").body == b"no"
    kept.close()
    assert server.heard == [[b"/0", b"/1", b"/2"], [b"/3"], [b"/4"]]


@pytest.mark.parametrize("served", [([ANSWER, b""],)], indirect=True)
def test_a_request_without_an_answer_is_not_sent_again(served: tuple[Server, Kept]) -> None:
    server, kept = served
    assert kept.send("POST", "/0", b"{}").status == 400
    with pytest.raises(http.client.RemoteDisconnected):
        kept.send("POST", "/1", b"{}")
    assert server.heard == [[b"/0", b"/1"]]

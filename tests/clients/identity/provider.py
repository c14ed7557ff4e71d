"""The certified provider for Node as a process, and people with a browser at it."""

import contextlib
import http.client
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

from tests.clients.node import NodeMissingError, install

HERE = Path(__file__).parent / "node"
SECRET = "the secret of the gateway at the provider"
MAX_STEPS = 20


@dataclass
class CertifiedProvider:
    """The provider; its description is at `url`."""

    process: subprocess.Popen[str]
    issuer: str

    @property
    def url(self) -> str:
        return f"{self.issuer}/.well-known/openid-configuration"

    def serve(self, gateway: str, people: dict[str, dict[str, Any]]) -> None:
        """Serve one gateway from now on; `people` are the claims of each person by their subject."""
        asked = {"gateway": gateway, "secret": SECRET, "people": people}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        assert _line(self.process) == {}


@contextlib.contextmanager
def running_provider() -> Iterator[CertifiedProvider]:
    """Start the provider; raises NodeMissingError."""
    program = shutil.which("node")
    if program is None:
        raise NodeMissingError("node is not on the PATH")
    command = [program, "--no-warnings", str(HERE / "main.mjs"), str(install(HERE))]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as process:
        yield CertifiedProvider(process, _line(process)["issuer"])
        assert process.stdin is not None
        process.stdin.close()


@dataclass
class Person:
    """A person with a browser, which keeps cookies by host and port, and follows redirects and forms."""

    name: str
    cookies: dict[str, dict[str, str]] = field(default_factory=dict)
    page: str = ""

    def visit(self, url: str, gateway: str) -> str:
        """Go to an address and on, until a page of the gateway is reached; return its path with the query."""
        form: dict[str, str] | None = None
        for _ in range(MAX_STEPS):
            status, location = self._ask(url, form)
            form = None
            if location is not None:
                url = urljoin(url, location)
                if url.startswith(gateway) and "/oauth/" not in url:
                    return url.removeprefix(gateway)
                continue
            assert status == 200, (status, url, self.page)
            url, form = self._fill(url)
        raise AssertionError(f"no end of redirects: {url}")

    def token(self, gateway: str) -> str:
        """Return the session that the gateway has given."""
        return self.cookies.get(urlsplit(gateway).netloc, {}).get("token", "")

    def _ask(self, url: str, form: dict[str, str] | None) -> tuple[int, str | None]:
        parts = urlsplit(url)
        jar = self.cookies.setdefault(parts.netloc, {})
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in jar.items())}
        body = None
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            body = urlencode(form)
        with contextlib.closing(http.client.HTTPConnection(parts.netloc, timeout=30)) as connection:
            path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
            connection.request("POST" if form is not None else "GET", path, body, headers)
            reply = connection.getresponse()
            for line in reply.headers.get_all("Set-Cookie") or ():
                for name, morsel in SimpleCookie(line).items():
                    jar[name] = morsel.value
            self.page = reply.read().decode()
            return reply.status, reply.headers["Location"]

    def _fill(self, url: str) -> tuple[str, dict[str, str]]:
        """Fill in the form of a page of the provider: sign in, agree, or sign out."""
        action = re.search(r'<form[^>]*action="([^"]+)"', self.page)
        assert action is not None, self.page
        fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', self.page))
        if 'name="login"' in self.page:
            fields |= {"login": self.name, "password": "any"}
        if 'name="logout"' in self.page:
            fields["logout"] = "yes"
        return urljoin(url, action[1]), fields


def _line(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "the process of the provider ended"
    return json.loads(line)

"""Usage of a running daemon: one's own, that of all, its prices, and a killed daemon."""

import csv
import json
import signal
import time
from pathlib import Path
from typing import Any

from tests.blackbox.test_limits import PASSWORD, LimitSite
from tests.fakes.daemons.daemon import running_daemon
from tests.fakes.daemons.failing_provider_site import configuration
from tests.fakes.http.multipart_forms import FORM, file_part, form
from tests.fakes.http.raw_http import send
from tests.fakes.providers.all_routes_upstream import Everything
from tests.fakes.providers.background_upstream import background_upstream
from tests.fakes.providers.upstream import json_reply, openai_completion

PRICE = '[[model_prices]]\nmodel = "m"\nprompt = 100000\ncompletion = 50000\n'


def usage_of(site: LimitSite, query: str = "", token: str = "") -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {token or site.token}"}
    reply = send(site.daemon.base_url, "GET", f"/api/v1/usage{query}", None, headers)
    return reply.status, reply.json.get("usage", reply.json)


def wait_for(site: LimitSite, requests: int, query: str = "") -> dict[str, Any]:
    for _ in range(60):
        lines = usage_of(site, query)[1]
        if sum(line["requests"] for line in lines) >= requests:
            line: dict[str, Any] = lines[0]
            return line
        time.sleep(0.05)
    raise AssertionError(f"{requests} requests were not stored: {lines}")


def test_usage_is_stored_within_a_second_and_survives_a_kill(tmp_path: Path) -> None:
    settings = tmp_path / "gatewayd.toml"
    with background_upstream(("m", "other"), kind=Everything) as provider:
        settings.write_text(configuration(provider.url) + PRICE)
        with running_daemon(tmp_path / "state", "-f", str(settings)) as daemon:
            form = {"name": "Root", "email": "root@example.org", "password": PASSWORD}
            made = daemon.call("POST", "/api/v1/auths/signup", form)[1]
            site = LimitSite(daemon, provider, made["token"])
            check_own_and_others(site)
            daemon.process.send_signal(signal.SIGKILL)
            daemon.process.wait()
        with running_daemon(tmp_path / "state", "-f", str(settings)) as daemon:
            site = LimitSite(daemon, provider, made["token"])
            assert usage_of(site, "?by=user")[1][0]["requests"] == 2
            provider.script(json_reply(openai_completion("a")))
            assert site.ask("o.other").status == 200
            # A daemon that stops writes what has come.
        settings.write_text(document_services(provider.url) + configuration(provider.url))
        with running_daemon(tmp_path / "state", "-f", str(settings)) as daemon:
            site = LimitSite(daemon, provider, made["token"])
            (line,) = [each for each in usage_of(site)[1] if each["model"] == "o.other"]
            assert (line["requests"], line["cost"], line["unpriced"]) == (1, None, 1)
            check_documents(site)


def document_services(url: str) -> str:
    """Return the settings of an embedding model and a reranker of a provider."""
    return f"""
rag_embedding_engine = "openai"
rag_embedding_model = "m"
rag_openai_api_base_url = "{url}/v1"
rag_reranking_engine = "external"
rag_reranking_model = "judge"
rag_external_reranker_url = "{url}/v1/rerank"
"""


def check_documents(site: LimitSite) -> None:
    """The embeddings of a document, of a query and the reranking count for whoever asked."""
    parts = form(file_part(b"The library opens at nine."))
    headers = {"Authorization": f"Bearer {site.token}", "Content-Type": FORM}
    path = "/api/v1/files/?process_in_background=false"
    file = send(site.daemon.base_url, "POST", path, parts, headers).json
    query = {"collection_names": [f"file-{file['id']}"], "query": "When does it open?"}
    answer = site.send("/api/v1/retrieval/query/collection", query)
    assert answer.status == 200, answer
    assert answer.headers.get("x-gateway-warning") is None
    wait_for(site, 7, query := "?by=provider,endpoint,user")
    lines = usage_of(site, query)[1]
    found = {
        (line["provider"], line["endpoint"], line["user"]): (line["requests"], line["prompt_tokens"])
        for line in lines
        if line["provider"] != "hosted"
    }
    root = "root@example.org"
    assert found == {
        # The question for the length of the vectors.
        ("embedding", "embeddings", ""): (1, 2),
        # "The library opens at nine.", and the query.
        ("embedding", "embeddings", root): (2, 7 + 5),
        # Both of them.
        ("reranker", "rerank", root): (1, 5 + 7),
    }


def check_own_and_others(site: LimitSite) -> None:
    for _ in range(2):
        site.provider.script(json_reply(openai_completion("a")))
        assert site.ask().status == 200
    line = wait_for(site, 2, "?by=model,user,endpoint")
    assert (line["model"], line["user"], line["endpoint"]) == ("o.m", "root@example.org", "chat")
    assert (line["prompt_tokens"], line["completion_tokens"], line["estimated"]) == (6, 4, 0)
    assert (line["cost"], line["unpriced"]) == (0.8, 0)
    user = {"name": "Ada", "email": "ada@example.org", "password": PASSWORD, "role": "user"}
    token = site.send("/api/v1/auths/add", user).json["token"]
    assert usage_of(site, token=token) == (200, [])
    assert usage_of(site, f"?user_id={line['user_id']}", token)[0] == 403
    assert usage_of(site, "?by=group", token)[0] == 403
    for bad in (
        "?by=odd",
        "?since=2026-02-30",
        "?until=x",
        "?limit=0",
        "?limit=99999",
        f"?model={'x' * 3000}",
    ):
        assert usage_of(site, bad)[0] == 400
    assert usage_of(site, "?user_id=nobody")[1] == []
    exported = site.daemon.run_ctl("usage", "export", "--format", "csv").stdout.splitlines()
    (row,) = csv.DictReader(exported)
    assert (row["user"], row["provider"], row["total_tokens"]) == ("root@example.org", "hosted", "10")
    plot = site.daemon.run_ctl("usage", "report", "--by", "user", "--plot").stdout
    assert plot.startswith(f"root@example.org  {'#' * 40}  $0.8")
    top = json.loads(site.daemon.run_ctl("top", "--once", "--by", "user", "-o", "json").stdout)
    assert (top["total"]["finished"], top["lines"][0]["name"]) == (2, "root@example.org")
    assert [queue["name"] for queue in top["queues"]] == ["files", "batches"]
    assert "QUEUE" in site.daemon.run_ctl("top", "--once").stdout

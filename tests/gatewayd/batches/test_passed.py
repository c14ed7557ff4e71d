"""Tests for the batches that providers run, over a provider that runs them: what may go wrong."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from gatewayd.batches import passed_answers, passed_choice, passed_upload
from gatewayd.batches import worker as worker_module
from gatewayd.batches.passed_state import PassedState
from gatewayd.batches.records import BatchDialect, BatchStatus
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.providers.models import make_actor
from tests.fakes.providers.passed_bench import NOW, PassedBench, passed_bench

TURNS = [{"role": "user", "content": "hi"}]
HELLO = {"model": "up.m", "messages": TURNS, "max_tokens": 9}
BOTH = list(BatchDialect)


@pytest.fixture(params=BOTH)
async def bench(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[PassedBench]:
    async with passed_bench(tmp_path, request.param) as made:
        yield made


@pytest.fixture
async def chats(tmp_path: Path) -> AsyncIterator[PassedBench]:
    async with passed_bench(tmp_path) as made:
        yield made


def bodies(count: int, **changes: Any) -> list[dict[str, Any]]:
    return [{**HELLO, **changes} for _ in range(count)]


def outcomes(bench: PassedBench, batch: Any) -> dict[str, str]:
    """Return how each line ended: ok, or the code of its error, or that it did not run."""
    found: dict[str, str] = {}
    for file_id in (batch.output_file_id, batch.error_file_id):
        if file_id is None:
            continue
        for custom_id, line in bench.results(file_id).items():
            result, response = line.get("result"), line.get("response")
            if result is not None:
                error = (result.get("error") or {}).get("error") or {}
                found[custom_id] = {"succeeded": "ok"}.get(
                    result["type"], error.get("code") or result["type"]
                )
            elif response is not None:
                is_ok = response["status_code"] == 200
                found[custom_id] = "ok" if is_ok else response["body"]["error"]["code"]
            else:
                found[custom_id] = line["error"]["code"]
    return found


def is_clean(bench: PassedBench) -> bool:
    assert bench.states.rows == {}
    folders = [bench.folder / name for name in ("passed", "progress")]
    return not any(list(each.iterdir()) for each in folders if each.exists())


def mark(bench: PassedBench, number: int) -> str:
    return f"gw_batch_b_{number}"


async def test_the_provider_runs_a_batch(bench: PassedBench) -> None:
    await bench.add([*bodies(2), {**HELLO, "model": "up.n"}])
    batch = await bench.finish()
    assert (batch.status, batch.completed, batch.failed) == (BatchStatus.COMPLETED, 3, 0)
    assert outcomes(bench, batch) == {"c0": "ok", "c1": "ok", "c2": "ok"}
    assert bench.own == []
    sums = {(key.model, key.provider, key.endpoint): each for key, each in bench.store.usage.items()}
    assert {key: (each.requests, each.prompt, each.completion) for key, each in sums.items()} == {
        ("up.m", "up", "chat"): (2, 10, 6),
        ("up.n", "up", "chat"): (1, 5, 3),
    }
    assert is_clean(bench)
    assert bench.provider.files == {} or bench.dialect is BatchDialect.ANTHROPIC


@pytest.mark.parametrize(
    ("endpoint", "body"),
    [
        ("/v1/embeddings", {"model": "up.m", "input": "a", "encoding_format": "base64"}),
        ("/v1/completions", {"model": "up.m", "prompt": "a"}),
    ],
)
async def test_other_endpoints(chats: PassedBench, endpoint: str, body: dict[str, Any]) -> None:
    await chats.add([body], endpoint)
    batch = await chats.finish()
    assert (batch.completed, chats.own) == (1, [])
    [[line]] = chats.provider.lines.values()
    assert line["url"] == endpoint
    assert chats.counted().prompt == 5


@pytest.mark.parametrize(
    ("body", "endpoint"),
    [
        ({"model": "own.m", "messages": TURNS}, ""),
        ({"model": "gone", "messages": TURNS}, ""),
        ({"model": "up.m", "input": "a"}, "/v1/moderations"),
        ({"model": "up.m", "input": "a"}, "/v1/responses"),
        ({"model": "up.m", "messages": TURNS, "tool_ids": ["t"]}, ""),
        ({"model": "up.m", "messages": TURNS, "files": [{"type": "file", "id": "f"}]}, ""),
    ],
)
async def test_what_the_gateway_runs_itself(chats: PassedBench, body: dict[str, Any], endpoint: str) -> None:
    await chats.add([body, body], endpoint)
    await chats.finish()
    assert len(chats.own) == 2
    assert chats.provider.batches == {}
    assert is_clean(chats)


async def test_a_line_that_cannot_be_sent_has_its_error(bench: PassedBench) -> None:
    wrong = {**HELLO, "messages": [{"role": "nobody", "content": "hi"}]}
    await bench.add([HELLO, {**HELLO, "model": "gone"}, wrong, HELLO])
    batch = await bench.finish()
    found = outcomes(bench, batch)
    assert (found["c0"], found["c1"], found["c3"]) == ("ok", "model_not_found", "ok")
    if bench.dialect is BatchDialect.OPENAI:
        assert found["c2"] != "ok"
    assert (batch.completed + batch.failed, bench.own) == (4, [])
    [lines] = bench.provider.lines.values()
    assert lines[0]["custom_id"] == mark(bench, 1)


async def test_models_of_several_providers_fail_the_batch(chats: PassedBench) -> None:
    await chats.add([HELLO, {**HELLO, "model": "own.m"}])
    batch = await chats.finish()
    assert batch.status is BatchStatus.FAILED
    (fault,) = batch.errors
    assert (fault["code"], fault["line"]) == ("mixed_providers", 2)
    assert chats.provider.batches == {}


async def test_placeholders_are_filled_and_fields_adapted(chats: PassedBench) -> None:
    system = {"role": "system", "content": "for {{USER_NAME}}"}
    await chats.add([{**HELLO, "messages": [system, *TURNS], "stream": False, "chat_id": "x"}])
    await chats.finish()
    [[line]] = chats.provider.lines.values()
    assert "{{" not in json.dumps(line)
    assert {"stream", "chat_id"}.isdisjoint(line["body"])


@dataclass
class Filters:
    """A filter that has the outlet alone."""

    inlets: tuple[Any, ...] = ()
    streams: tuple[Any, ...] = ()
    outlets: tuple[Any, ...] = (1,)
    handles_files: bool = False

    async def choose(self, request: Any, model: Any, actor: Any) -> Any:
        return self

    async def are_on(self, model_id: str) -> bool:
        return False


async def test_what_a_filter_sees_is_run_by_the_gateway(tmp_path: Path) -> None:
    async with passed_bench(tmp_path, filters=Filters()) as bench:
        await bench.add(bodies(2))
        await bench.finish()
        assert (len(bench.own), bench.provider.batches) == (2, {})


async def test_a_new_batch_is_checked(chats: PassedBench) -> None:
    batch = await chats.add([HELLO, {**HELLO, "model": "gone"}])
    async with chats.files.local(batch.input_file_id) as source:
        await chats.passed.check(batch, source, make_actor())
    batch = await chats.add([HELLO, HELLO, {**HELLO, "model": "own.m"}])
    async with chats.files.local(batch.input_file_id) as source:
        with pytest.raises(GatewayError, match="line 3 names model") as caught:
            await chats.passed.check(batch, source, make_actor())
    assert (caught.value.code, caught.value.param) == ("mixed_providers", "model")


async def test_too_large_requests_are_run_by_the_gateway(
    bench: PassedBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passed_upload, "MAX_UPLOAD_BYTES", 100)
    await bench.add(bodies(2))
    await bench.finish()
    assert (len(bench.own), bench.provider.batches) == (2, {})
    assert is_clean(bench)


async def test_too_many_models_are_run_by_the_gateway(
    chats: PassedBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passed_choice, "MAX_MODELS", 1)
    await chats.add([HELLO, {**HELLO, "model": "up.n"}])
    await chats.finish()
    assert len(chats.own) == 2


async def test_answers_have_a_limit(bench: PassedBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passed_answers, "MAX_RESULT_BYTES", 1)
    monkeypatch.setattr(passed_answers, "RESULTS_AT_ONCE", 1)
    await bench.add(bodies(3))
    batch = await bench.finish()
    assert (batch.completed, batch.failed) == (1, 2)
    assert sorted(outcomes(bench, batch).values()) == ["batch_too_large", "batch_too_large", "ok"]


async def test_a_line_of_results_has_a_limit(chats: PassedBench, monkeypatch: pytest.MonkeyPatch) -> None:
    def change(lines: list[Any]) -> list[Any]:
        lines[0]["response"]["body"]["x"] = "y" * 5000
        return lines

    monkeypatch.setattr(passed_answers, "MAX_ANSWER_BYTES", 2000)
    chats.provider.change = change
    await chats.add(bodies(2))
    batch = await chats.finish()
    assert (batch.completed, batch.failed) == (1, 1)


async def test_a_batch_that_fails_again_and_again_is_cancelled(
    bench: PassedBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.provider.questions = 10**9
    await bench.add(bodies(2))
    await bench.worker.start_waiting()
    await until(lambda: bench.provider.count("GET batches") > 1)
    await bench.kill()
    monkeypatch.setattr(worker_module, "MAX_CRASHES", 0)
    batch = await bench.finish()
    assert batch.status is BatchStatus.FAILED
    assert bench.provider.count("POST batches cancel") == 1


async def test_states_of_batches_that_are_gone_are_deleted(chats: PassedBench) -> None:
    (chats.folder / "passed").mkdir()
    for name in ("batch_b", "batch_c"):
        (chats.folder / "passed" / f"{name}.json").write_text("{")
        (chats.folder / "passed" / f"{name}.jsonl").write_text("")
    await chats.add(bodies(1))
    await chats.worker.sweep()
    assert {each.name for each in (chats.folder / "passed").iterdir()} == {"batch_b.json", "batch_b.jsonl"}


# The files of former versions --------------------------------------------------------------------------


def write_state(bench: PassedBench, name: str, text: str) -> Path:
    path = bench.folder / "passed" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


async def test_states_in_files_are_taken_over_once(
    chats: PassedBench, caplog: pytest.LogCaptureFixture
) -> None:
    await chats.add(bodies(3))
    path = write_state(chats, "batch_b", '{"provider": "up", "sent": 3, "tried_at": 7, "rejected": ["x"]}')
    gone = write_state(chats, "batch_gone", '{"provider": "up"}')
    bad = write_state(chats, "batch_bad", "[1")
    await chats.passed.take_over()
    assert [path.exists(), gone.exists(), bad.exists()] == [False, False, True]
    assert chats.states.rows == {"batch_b": PassedState("up", sent=3, tried_at=7, rejected=("x",))}
    assert "cannot take over the state of a batch: cannot read batch_bad.json" in caplog.text
    # A file that comes back, as after a kill before it was deleted, changes nothing.
    write_state(chats, "batch_b", '{"provider": "other"}')
    await chats.passed.take_over()
    assert chats.states.rows["batch_b"].provider == "up"


async def test_a_batch_with_a_bad_file_is_not_submitted_again(
    chats: PassedBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(worker_module, "MAX_CRASHES", 10**6)
    await chats.add(bodies(1))
    path = write_state(chats, "batch_b", '["provider"]')
    await chats.worker.start_waiting()
    await until(lambda: not chats.tasks.list())
    assert (chats.provider.count("POST batches"), path.exists()) == (0, True)
    path.write_text('{"provider": "up"}')
    assert (await chats.finish()).completed == 1
    assert not path.exists()


# Another node ------------------------------------------------------------------------------------------


async def test_a_submission_is_noted_before_it_is_made(bench: PassedBench) -> None:
    """What a node finds that takes over in between: the intention with its time, and the batch once."""
    bench.provider.forgets = {"POST batches"}
    bench.provider.questions = 10**9
    await bench.add(bodies(3))
    await bench.worker.start_waiting()
    await until(lambda: bench.provider.batches)
    state = bench.states.rows["batch_b"]
    assert (state.sent, state.tried_at, state.last_tried_at) == (3, NOW, NOW)
    await bench.kill()
    # The requests were a file of the other node.
    for path in (bench.folder / "passed").glob("*"):
        path.unlink()
    bench.provider.questions = 2
    batch = await bench.finish()
    assert (batch.status, batch.completed, bench.counted().requests) == (BatchStatus.COMPLETED, 3, 3)
    assert bench.provider.count("POST batches") == 1


async def test_a_node_that_was_taken_over_submits_and_writes_nothing(
    bench: PassedBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "PAUSE_SECONDS", 0.001)
    await bench.add(bodies(3))

    async def run_until_taken() -> None:
        """Run the worker, which another node takes over meanwhile, and once more."""
        for _ in range(2):
            await bench.worker.start_waiting()
            await until(lambda: not bench.tasks.list())
        assert bench.is_taken

    async def submit(batch: Any) -> Any:
        # The requests are written next, and the intention is stored.
        bench.is_taken = bench.store.rows["batch_b"].total > 0 and bool(bench.store.counted)
        return make_actor(batch.user_id)

    monkeypatch.setattr(bench, "of", submit)
    await run_until_taken()
    assert (bench.states.rows, bench.provider.count("POST batches")) == ({}, 0)
    monkeypatch.undo()
    monkeypatch.setattr(worker_module, "PAUSE_SECONDS", 0.001)
    bench.is_taken = False
    bench.provider.questions = 10**9
    await bench.kill()
    await bench.worker.start_waiting()
    await until(lambda: bench.states.rows["batch_b"].batch_id if bench.states.rows else "")
    rows, states = dict(bench.store.rows), dict(bench.states.rows)
    bench.is_taken = True
    bench.provider.questions = 0
    await until(lambda: not bench.tasks.list())
    await run_until_taken()
    assert (bench.store.rows, bench.states.rows, len(bench.rows.rows)) == (rows, states, 1)
    assert bench.counted().requests == 0
    bench.is_taken = False
    await bench.kill()
    batch = await bench.finish()
    assert (batch.status, batch.completed, bench.counted().requests) == (BatchStatus.COMPLETED, 3, 3)
    assert bench.provider.count("POST batches") == 1


async def test_a_takeover_waits_from_the_last_try(chats: PassedBench) -> None:
    """The first try was long ago, the last one is so young that the provider may not list it yet."""
    await chats.add(bodies(3))
    chats.states.rows["batch_b"] = PassedState("up", sent=3, tried_at=NOW - 500, last_tried_at=NOW)
    seen: list[int] = []

    def look() -> None:
        seen.append(chats.provider.count("POST batches"))
        chats.now += 16

    chats.acts = [look, look]
    assert (await chats.finish()).completed == 3
    assert seen == [0, 0]


# What may go wrong at the provider ---------------------------------------------------------------------


@pytest.mark.parametrize("what", ["POST files", "POST batches", "GET batches", "GET files content"])
@pytest.mark.parametrize("statuses", [[503, 500, 429], [401]])
async def test_an_unavailable_provider_is_waited_for(
    chats: PassedBench, what: str, statuses: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    def later() -> None:
        chats.now += 40

    chats.acts = [later] * 20
    chats.provider.failures[what] = list(statuses)
    await chats.add(bodies(2))
    batch = await chats.finish()
    assert (batch.status, batch.completed) == (BatchStatus.COMPLETED, 2)
    assert len(chats.provider.batches) == 1
    assert f"status {statuses[0]}" in caplog.text


async def test_requests_go_with_a_run_that_another_node_may_go_on_with(bench: PassedBench) -> None:
    requests = bench.folder / "passed" / "batch_b.jsonl"
    seen: list[bool] = []
    bench.acts = [lambda: seen.append(requests.exists())]
    bench.provider.failures["POST batches"] = [503] * 1000
    await bench.add(bodies(2))
    await bench.worker.start_waiting()
    await until(lambda: seen)
    assert seen == [True]
    await bench.kill()
    assert not requests.exists()


async def test_a_refused_submission_fails_the_batch(bench: PassedBench) -> None:
    bench.provider.failures["POST batches"] = [400]
    await bench.add(bodies(2))
    batch = await bench.finish()
    assert (batch.status, batch.completed, batch.failed) == (BatchStatus.FAILED, 0, 0)
    (fault,) = batch.errors
    assert "'up'" in fault["message"]
    assert "status 400" in fault["message"]
    assert is_clean(bench)


async def test_faults_of_the_provider_name_the_lines_of_the_caller(chats: PassedBench) -> None:
    await chats.add([{**HELLO, "model": "gone"}, *bodies(2)])

    def refuse() -> None:
        for batch in chats.provider.batches.values():
            fault = {"code": "invalid_json", "message": "bad line", "line": 2}
            batch |= {"status": "failed", "errors": {"data": [fault, {"code": "x"}]}}

    chats.provider.questions = 100
    chats.acts = [refuse]
    batch = await chats.finish()
    assert batch.status is BatchStatus.FAILED
    assert [(fault["code"], fault["line"]) for fault in batch.errors] == [("invalid_json", 3), ("x", None)]
    assert outcomes(chats, batch) == {"c0": "model_not_found", "c1": "batch_failed", "c2": "batch_failed"}


async def test_repeated_unknown_and_missing_results(
    bench: PassedBench, caplog: pytest.LogCaptureFixture
) -> None:
    def change(lines: list[Any]) -> list[Any]:
        strange = [
            {**lines[0], "custom_id": name}
            for name in ("", "c0", "gw_batch_b_", "gw_batch_b_99", "gw_batch_b_0", "gw_batch_b_-1")
        ]
        return [lines[0], *strange, lines[0], [1], {"custom_id": mark(bench, 2)}, lines[2], lines[0]]

    bench.provider.change = change
    await bench.add(bodies(3))
    batch = await bench.finish()
    assert (batch.status, batch.completed, batch.failed) == (BatchStatus.COMPLETED, 2, 1)
    found = outcomes(bench, batch)
    assert (found["c0"], found["c2"]) == ("ok", "ok")
    assert found["c1"] != "ok"
    assert (bench.counted().requests, bench.counted().prompt) == (2, 10)
    assert "belong to no request" in caplog.text


async def test_errors_of_lines(bench: PassedBench) -> None:
    def change(lines: list[Any]) -> list[Any]:
        if bench.dialect is BatchDialect.ANTHROPIC:
            error = {
                "type": "error",
                "error": {"type": "invalid_request_error", "message": "bad sk-abcdef-1"},
            }
            lines[1]["result"] = {"type": "errored", "error": error}
        else:
            body = {"error": {"message": "bad sk-abcdef-1", "code": "unsupported_value"}}
            lines[1]["response"] = {"status_code": 400, "body": body}
        return lines

    bench.provider.change = change
    await bench.add(bodies(2))
    batch = await bench.finish()
    assert (batch.status, batch.completed, batch.failed) == (BatchStatus.COMPLETED, 1, 1)
    line = bench.results(batch.error_file_id or batch.output_file_id)["c1"]
    assert "'up'" in str(line)
    assert "sk-abcdef" not in str(line)


async def test_an_expired_batch_of_the_provider(bench: PassedBench) -> None:
    def change(lines: list[Any]) -> list[Any]:
        if bench.dialect is BatchDialect.ANTHROPIC:
            lines[1]["result"] = {"type": "expired"}
        else:
            lines[1] |= {"response": None, "error": {"code": "batch_expired", "message": "m"}}
        return lines

    bench.provider.change = change
    await bench.add(bodies(2))
    batch = await bench.finish()
    assert (batch.status, batch.completed) == (BatchStatus.EXPIRED, 1)
    assert outcomes(bench, batch)["c1"] in {"batch_expired", "expired"}
    assert bench.counted().requests == 1


async def test_a_batch_that_the_provider_cancelled_fails_its_lines(bench: PassedBench) -> None:
    def end() -> None:
        for each in bench.provider.batches.values():
            bench.provider.end(each, is_cancelled=True)

    bench.provider.questions = 100
    bench.acts = [end]
    await bench.add(bodies(2))
    batch = await bench.finish()
    assert (batch.status, batch.completed, batch.failed) == (BatchStatus.COMPLETED, 1, 1)


async def test_the_end_of_the_time_cancels_at_the_provider(bench: PassedBench) -> None:
    def late() -> None:
        bench.now = NOW + 24 * 3600

    bench.provider.questions = 100
    bench.acts = [late]
    await bench.add(bodies(3))
    batch = await bench.finish()
    assert (batch.status, batch.completed) == (BatchStatus.EXPIRED, 1)
    assert bench.provider.count("POST batches cancel") == 1


async def test_a_batch_that_another_node_cancelled(bench: PassedBench) -> None:
    bench.provider.questions = 10**9
    await bench.add(bodies(2))
    await bench.worker.start_waiting()
    await until(lambda: bench.provider.count("GET batches") > 1)
    await bench.store.change(
        "batch_b", {BatchStatus.IN_PROGRESS}, status=BatchStatus.CANCELLING, cancelled_at=NOW
    )
    await bench.worker.start_waiting()
    await until(lambda: bench.provider.count("POST batches cancel") == 1)
    await bench.tasks.close()


async def test_a_cancelled_batch(bench: PassedBench) -> None:
    def cancel() -> None:
        row = bench.store.rows["batch_b"]
        changed = {"status": BatchStatus.CANCELLING, "cancelled_at": NOW}
        bench.store.rows["batch_b"] = type(row)(**{**{n: getattr(row, n) for n in row.__slots__}, **changed})
        bench.worker.stop_batch("batch_b")

    bench.provider.questions = 100
    bench.provider.failures["POST batches cancel"] = [503]
    bench.acts = [cancel]
    await bench.add(bodies(3))
    batch = await bench.finish()
    assert (batch.status, batch.completed) == (BatchStatus.CANCELLED, 1)
    assert bench.provider.count("POST batches cancel") == 2
    assert bench.counted().requests == 1


async def test_a_user_without_rights_has_the_batch_cancelled(bench: PassedBench) -> None:
    def forbid() -> None:
        bench.refusal = GatewayError(ErrorKind.FORBIDDEN, "no account", code="account_inactive")

    bench.provider.questions = 100
    bench.acts = [forbid]
    await bench.add(bodies(3))
    batch = await bench.finish()
    assert (batch.status, batch.completed, batch.failed) == (BatchStatus.COMPLETED, 1, 2)
    assert sorted(outcomes(bench, batch).values()) == ["account_inactive", "account_inactive", "ok"]


async def test_results_of_a_removed_user_are_deleted_at_the_provider(
    chats: PassedBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user is erased while the results are read."""
    await chats.add(bodies(2))
    add_usage = chats.store.store_usage

    async def erased(batch_id: str, usage: Any, completed: int, failed: int) -> bool:
        if completed:
            chats.store.rows.pop(batch_id, None)
        return await add_usage(batch_id, usage, completed, failed)

    monkeypatch.setattr(chats.store, "store_usage", erased)
    await chats.worker.start_waiting()
    await until(lambda: not chats.tasks.list())
    assert (chats.store.rows, chats.provider.files) == ({}, {})


async def test_a_removed_user_has_the_batch_cancelled(bench: PassedBench) -> None:
    bench.provider.questions = 100
    bench.acts = [bench.store.rows.clear]
    await bench.add(bodies(3))
    with pytest.raises(KeyError):
        await bench.finish()
    assert bench.provider.count("POST batches cancel") == 1
    assert is_clean(bench)


async def test_a_batch_that_is_gone(bench: PassedBench) -> None:
    bench.provider.questions = 100
    bench.acts = [bench.provider.batches.clear]
    await bench.add(bodies(2))
    batch = await bench.finish()
    assert batch.status is BatchStatus.FAILED
    assert [fault["code"] for fault in batch.errors] == ["provider_batch_gone"]


async def test_results_that_are_gone(chats: PassedBench) -> None:
    chats.provider.failures["GET files content"] = [404]
    await chats.add(bodies(2))
    batch = await chats.finish()
    assert batch.status is BatchStatus.FAILED
    assert [fault["code"] for fault in batch.errors] == ["provider_results_gone"]
    assert outcomes(chats, batch) == {"c0": "batch_failed", "c1": "batch_failed"}


async def test_a_provider_that_the_settings_do_not_name_any_more(chats: PassedBench) -> None:
    def forget() -> None:
        chats.catalog.use([])

    def late() -> None:
        chats.now = NOW + 26 * 3600

    chats.provider.questions = 100
    chats.acts = [forget, late]
    await chats.add(bodies(2))
    assert (await chats.finish()).status is BatchStatus.EXPIRED


async def test_a_lost_submission_to_a_provider_that_stays_away(chats: PassedBench) -> None:
    def late() -> None:
        chats.now = NOW + 25 * 3600

    chats.states.rows["batch_b"] = PassedState("up", sent=2, tried_at=NOW)
    chats.provider.failures["GET batches"] = [503] * 9
    chats.acts = [lambda: None, late]
    await chats.add(bodies(2))
    assert (await chats.finish()).status is BatchStatus.EXPIRED
    assert chats.provider.count("POST batches") == 0


# Kills ---------------------------------------------------------------------------------------------------


async def until(found: Any) -> None:
    async with asyncio.timeout(10):
        while not found():
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("is_known", [True, False])
async def test_a_kill_behind_the_submission(bench: PassedBench, *, is_known: bool) -> None:
    await bench.add(bodies(3))
    bench.provider.questions = 10**9
    await bench.worker.start_waiting()

    def state() -> PassedState:
        return bench.states.rows.get("batch_b") or PassedState("")

    await until(lambda: state().batch_id)
    await bench.kill()
    if not is_known:
        bench.states.rows["batch_b"] = replace(state(), batch_id="")
        # One of somebody else has the same size and time.
        bench.provider.lines["up9"] = [{**bench.provider.lines["up0"][0], "custom_id": "x"}] * 3
        bench.provider.batches["up9"] = {**bench.provider.batches["up0"], "id": "up9", "metadata": {}}
    bench.provider.questions = 2
    batch = await bench.finish()
    assert (batch.status, batch.completed) == (BatchStatus.COMPLETED, 3)
    assert bench.provider.count("POST batches") == 1
    assert bench.counted().requests == 3


async def test_a_lost_answer_to_the_submission(bench: PassedBench) -> None:
    bench.provider.forgets = {"POST batches"}
    await bench.add(bodies(3))
    batch = await bench.finish()
    assert (batch.status, batch.completed) == (BatchStatus.COMPLETED, 3)
    assert bench.provider.count("POST batches") == 1


async def test_a_submission_that_never_arrived_is_repeated_later(bench: PassedBench) -> None:
    bench.states.rows["batch_b"] = PassedState("up", sent=3, tried_at=NOW)
    seen: list[int] = []

    def look() -> None:
        seen.append(bench.provider.count("POST batches"))
        bench.now += 16

    bench.acts = [look, look]
    await bench.add(bodies(3))
    batch = await bench.finish()
    assert (batch.completed, bench.provider.count("POST batches"), seen) == (3, 1, [0, 0])


@pytest.mark.parametrize("place", ["stored", "counted"])
async def test_a_kill_between_storing_and_counting(bench: PassedBench, place: str) -> None:
    """The lines are stored, and the transaction of their usage fails or is done: each counts once."""
    await bench.add(bodies(300))
    if place == "stored":
        bench.store.fails = [GatewayError(ErrorKind.UNAVAILABLE, "no database")] * 3
    await bench.worker.start_waiting()
    progress = bench.folder / "progress" / "batch_b"
    await until(lambda: progress.exists() and progress.stat().st_size)
    if place == "counted":
        await until(lambda: bench.store.counted and bench.store.counted[-1][0])
    await bench.kill()
    bench.store.fails = []
    batch = await bench.finish()
    assert (batch.status, batch.completed) == (BatchStatus.COMPLETED, 300)
    assert (bench.counted().requests, bench.counted().prompt) == (300, 1500)
    assert bench.provider.count("POST batches") == 1


async def test_answers_whose_usage_was_not_counted_are_counted_without_a_kill(bench: PassedBench) -> None:
    """The database was away behind the answers, and is there when the results are read again."""
    bench.store.fails = [GatewayError(ErrorKind.UNAVAILABLE, "no database")] * 2
    await bench.add(bodies(300))
    batch = await bench.finish()
    assert (batch.status, batch.completed) == (BatchStatus.COMPLETED, 300)
    assert (bench.counted().requests, bench.counted().prompt) == (300, 1500)


async def test_a_kill_behind_the_results_asks_the_provider_for_nothing(bench: PassedBench) -> None:
    await bench.add(bodies(2))
    held = asyncio.Event()
    write = bench.files.write

    async def waiting(*args: Any) -> Any:
        held.set()
        await asyncio.Event().wait()
        return await write(*args)

    bench.files.write = waiting  # type: ignore[method-assign]
    await bench.worker.start_waiting()
    await held.wait()
    await bench.kill()
    bench.provider.asked.clear()
    batch = await bench.finish()
    assert (batch.status, batch.completed) == (BatchStatus.COMPLETED, 2)
    assert bench.provider.asked == []
    assert bench.counted().requests == 2


@dataclass
class Room:
    """A `ChargingAdmission`."""

    has_room: bool = True
    charged: int = 0

    def concerns(self, call: Any) -> bool:
        return False

    async def can_hold(self, call: Any, estimate: Any) -> bool:
        return self.has_room and estimate.completion == 27

    async def charge(self, call: Any) -> None:
        self.charged += call.usage.total


@pytest.mark.parametrize("has_room", [True, False])
async def test_budgets(bench: PassedBench, *, has_room: bool) -> None:
    room = Room(has_room)
    bench.catalog.meter.admissions.append(room)  # type: ignore[arg-type]
    await bench.add(bodies(3))
    await bench.finish()
    assert (room.charged, len(bench.own)) == ((24, 0) if has_room else (0, 3))


async def test_fifty_thousand_lines(chats: PassedBench) -> None:
    await chats.add(bodies(50_000))
    batch = await chats.finish()
    assert (batch.status, batch.completed) == (BatchStatus.COMPLETED, 50_000)
    assert chats.counted().requests == 50_000
    # 256 lines at a time, and never all of them.
    assert len(chats.store.counted) >= 50_000 // 256

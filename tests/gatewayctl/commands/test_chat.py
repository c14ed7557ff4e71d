"""gatewayctl chat."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from gatewayctl import transport
from gatewayctl.transport import StreamCutError
from gatewayd.completions.records import CompletionChunk
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.daemons.control_documents import boss
from tests.fakes.daemons.control_socket import Control, Ctl, Terminal, say


async def test_streams_plain_text_into_a_pipe(ctl: Ctl, control: Control) -> None:
    control.source.script = say("hel", "lo **you**", "")
    answer = await ctl("chat", "alpha", "how", "are", "you?", "--system", "be brief", "--max-tokens", "9")
    assert (answer.code, answer.out, answer.err) == (0, "hello **you**\n", "")
    asked = control.source.asked[0]
    assert asked["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "how are you?"},
    ]
    assert (asked["model"], asked["max_tokens"], "temperature" in asked) == ("up-alpha", 9, False)


async def test_question_on_stdin_and_the_first_model(ctl: Ctl, control: Control) -> None:
    assert (await ctl("chat", "-", "-", stdin="what?\n")).out == "hello\n"
    assert (await ctl("chat", stdin="what?\n")).out == "hello\n"
    assert [body["model"] for body in control.source.asked] == ["up-alpha", "up-alpha"]
    assert control.source.asked[0]["messages"][0]["content"] == "what?\n"


async def test_json_is_a_completion_and_jsonl_its_chunks(ctl: Ctl, control: Control) -> None:
    whole = json.loads((await ctl("chat", "alpha", "hi", "-o", "json")).out)
    assert whole["choices"][0]["message"]["content"] == "hello"
    lines = (await ctl("chat", "alpha", "hi", "--temperature", "0.5", "-o", "jsonl")).out.splitlines()
    assert [json.loads(line)["choices"][0]["delta"]["content"] for line in lines] == ["hel", "lo"]
    assert control.source.asked[1]["temperature"] == 0.5


async def test_in_the_name_of_an_account(ctl: Ctl, control: Control) -> None:
    await control.accounts.add_user("ann")
    refused = await ctl("chat", "alpha", "hi", "--user", "ann@example.org")
    assert (refused.code, refused.out) == (5, "")
    await ctl("model", "publish", "alpha")
    assert (await ctl("chat", "alpha", "hi", "--user", "ann@example.org")).out == "hello\n"
    assert control.source.contexts[-1].user_email == "ann@example.org"
    await ctl("user", "deactivate", "ann@example.org")
    assert (await ctl("chat", "alpha", "hi", "--user", "ann@example.org")).code == 4


async def test_failures_before_and_in_the_stream(ctl: Ctl, control: Control) -> None:
    assert (await ctl("chat", "none", "hi")).code == 5
    broken = GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot finish: fake broke")
    control.source.script = lambda body: [broken]
    early = await ctl("chat", "alpha", "hi", "-o", "jsonl")
    assert (early.code, early.out) == (1, "")
    part = CompletionChunk(events=[{"choices": [{"index": 0, "delta": {"content": "par"}}]}])
    control.source.script = lambda body: [part, broken]
    late = await ctl("chat", "alpha", "hi")
    assert (late.code, late.out) == (1, "par")
    assert "cannot finish: fake broke" in late.err


async def test_a_prompt_is_needed(ctl: Ctl) -> None:
    assert (await ctl("chat", "alpha", stdin="  ")).code == 2
    assert (await ctl("chat", "alpha", stdin=Terminal())).code == 2
    assert (await ctl("chat", "alpha", "hi", "--max-tokens", "0")).code == 2


@pytest.mark.parametrize("output", ["table", "name"])
async def test_text_comes_in_both_text_forms(ctl: Ctl, output: str) -> None:
    assert (await ctl("-o", output, "chat", "alpha", "hi")).out == "hello\n"


async def test_answers_from_a_collection_name_their_sources(
    ctl: Ctl, control: Control, tmp_path: Path
) -> None:
    await boss(control)
    manual = tmp_path / "pump.md"
    manual.write_text("The pump is switched off with the green lever.")
    assert (await ctl("collection", "create", "handbook")).code == 0
    assert (await ctl("file", "add", str(manual), "--collection", "handbook", "--wait")).code == 0
    answer = await ctl("chat", "alpha", "how is the pump switched off?", "-c", "handbook")
    assert (answer.code, answer.out) == (0, "hello\n")
    assert "[1] pump.md" in answer.err
    assert "green lever" in control.source.asked[-1]["messages"][-1]["content"]
    whole = json.loads((await ctl("chat", "alpha", "the pump?", "-c", "handbook", "-o", "json")).out)
    assert whole["sources"][0]["metadata"][0]["name"] == "pump.md"


async def test_files_of_one_name_are_cited_by_path_and_number(
    ctl: Ctl, control: Control, tmp_path: Path
) -> None:
    await boss(control)
    for place in ("north", "south"):
        (tmp_path / "docs" / place).mkdir(parents=True)
        (tmp_path / "docs" / place / "README.md").write_text(f"The lever of the {place} pump is green.")
    assert (await ctl("ingest", str(tmp_path / "docs"), "--collection", "handbook")).code == 0
    answer = await ctl("chat", "alpha", "which lever is green?", "-c", "handbook")
    told = answer.err.splitlines()
    asked = control.source.asked[-1]["messages"][-1]["content"]
    assert len(told) == 2
    for number, line in enumerate(told, start=1):
        path = line.removeprefix(f"[{number}] README.md (").removesuffix(")")
        assert f'<source id="{number}" name="README.md" path="{path}"' in asked
        assert f"The lever of the {path.split('/')[0]} pump" in asked


async def test_a_document_that_cannot_be_used_is_a_warning(ctl: Ctl) -> None:
    answer = await ctl("chat", "alpha", "hi", "--file", "none")
    assert (answer.code, answer.out) == (0, "hello\n")
    assert "warning: cannot" in answer.err
    assert "none" in answer.err
    whole = json.loads((await ctl("chat", "alpha", "hi", "--file", "none", "-o", "json")).out)
    assert "none" in whole["warnings"][0]
    assert (await ctl("chat", "alpha", "hi", "--collection", "none")).code == 5


def stream_ids(control: Control) -> list[str]:
    """Return the ids of the streams that the socket has, the newest last."""
    return sorted(control.streams._running)


async def test_answer_is_printed_again_by_its_id_for_the_same_user_alone(ctl: Ctl, control: Control) -> None:
    await control.accounts.add_user("ann")
    await ctl("model", "publish", "alpha")
    assert (await ctl("chat", "alpha", "hi", "--user", "ann@example.org")).out == "hello\n"
    (stream_id,) = stream_ids(control)
    again = await ctl("chat", "--resume", stream_id, "--user", "ann@example.org")
    assert (again.code, again.out, again.err) == (0, "hello\n", "")
    lines = (
        await ctl("chat", "--resume", stream_id, "--user", "ann@example.org", "-o", "jsonl")
    ).out.splitlines()
    assert json.loads(lines[0])["stream"]["id"] == stream_id
    assert [json.loads(line)["choices"][0]["delta"]["content"] for line in lines[1:]] == ["hel", "lo"]
    assert (await ctl("chat", "--resume", stream_id)).code == 5
    assert (await ctl("chat", "--resume", "none", "--user", "ann@example.org")).code == 5
    assert len(control.source.asked) == 1


async def test_resume_takes_no_question(ctl: Ctl) -> None:
    for words in (("alpha",), ("alpha", "hi"), ("-", "hi")):
        assert (await ctl("chat", *words, "--resume", "x")).code == 2


async def test_terminal_is_told_how_to_go_on(
    ctl: Ctl, control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    told = (await ctl("chat", "alpha", "hi")).err
    assert f"gatewayctl chat --resume {stream_ids(control)[0]}" in told


async def test_failure_that_is_no_broken_connection_stops_the_answer(ctl: Ctl, control: Control) -> None:
    part = CompletionChunk(events=[{"choices": [{"index": 0, "delta": {"content": "par"}}]}])
    control.source.script = lambda body: [part, GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot finish")]
    late = await ctl("chat", "alpha", "hi")
    assert (late.code, "--resume" in late.err) == (1, False)
    assert stream_ids(control) == []


async def test_broken_connection_leaves_the_answer_and_names_the_command(
    ctl: Ctl, control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(reply: object) -> Iterator[dict[str, object]]:
        yield from islice(events(reply), 2)
        raise StreamCutError("upstream_failed", "cannot finish the answer: the stream broke off")

    events = transport._events
    monkeypatch.setattr(transport, "_events", cut)
    broken = await ctl("chat", "alpha", "hi")
    assert (broken.code, broken.out) == (1, "hel")
    monkeypatch.setattr(transport, "_events", events)
    command = broken.err.partition("gatewayctl chat --resume ")[2].split()
    assert (await ctl("chat", "--resume", command[0])).out == "hello\n"

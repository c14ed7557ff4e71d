"""gatewayctl chat."""

import json
from pathlib import Path

import pytest

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

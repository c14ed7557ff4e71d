"""gatewayctl audit, and the routes behind it."""

import hashlib
import json
import os
import pwd

import pytest

from gatewayctl.commands.upkeep import audit as module
from tests.fakes.daemons.control_socket import Control, Ctl

ME = pwd.getpwuid(os.geteuid()).pw_name


async def fill(ctl: Ctl) -> None:
    for name in ("ada", "bea"):
        made = await ctl("user", "create", "--email", f"{name}@example.org")
        assert made.code == 0, made.err


async def test_a_change_has_its_row_before_its_reply(ctl: Ctl, control: Control) -> None:
    await fill(ctl)
    first, second = control.audit.store.kept
    assert (first.action, first.subject, second.subject) == (
        "user create",
        "ada@example.org",
        "bea@example.org",
    )
    assert (first.actor_kind, first.actor, first.actor_id) == ("unix", ME, str(os.geteuid()))
    assert (first.after["role"], first.result, first.address) == ("user", "done", "")
    await ctl("user", "create", "--email", "dry@example.org", "--dry-run")
    assert len(control.audit.store.kept) == 2


async def test_a_reply_is_refused_while_its_row_cannot_be_stored(
    ctl: Ctl, control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewayd.audit.trail.WAIT_SECONDS", 0.02)
    control.audit.store.is_away = True
    failed = await ctl("user", "create", "--email", "ada@example.org", "-o", "json")
    assert json.loads(failed.err)["error"]["kind"] == "unavailable"
    assert "it was made, but its row of the audit log cannot be written" in failed.err


async def test_tail_and_search(ctl: Ctl) -> None:
    await fill(ctl)
    assert (await ctl("audit", "tail", "-o", "name")).out == "1\n2\n"
    assert (await ctl("audit", "tail", "-n", "1", "-o", "name")).out == "2\n"
    shown = (await ctl("audit", "tail")).out
    assert f"unix:{ME}" in shown
    assert 'role="user"' in shown
    for given, found in (
        (("--who", ME), "1\n2\n"),
        (("--who", "nobody-else"), ""),
        (("--action", "create", "--target", "bea@"), "2\n"),
        (("--since", "1h"), "1\n2\n"),
        (("--until", "2020-01-01T00:00:00Z"), ""),
        (("--since", "2020-01-01", "--limit", "1"), "2\n"),
    ):
        assert (await ctl("audit", "search", *given, "-o", "name")).out == found, given


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("search", "--since", "yesterday"), 2, "cannot read --since"),
        (("search", "--who", "x" * 301), 1, "cannot accept who"),
        (("search", "--since", "9999-12-31", "--until", "40000w"), 0, ""),
        (("tail", "-n", "0"), 2, "--lines"),
        (("verify", "--checkpoints", "/dev/null"), 2, "cannot find a checkpoint"),
        (("verify", "--checkpoints", "/nowhere"), 1, "no such file"),
    ],
)
async def test_bad_arguments(ctl: Ctl, arguments: tuple[str, ...], code: int, words: str) -> None:
    done = await ctl("audit", *arguments)
    assert (done.code, words in done.err) == (code, True), done.err


async def test_an_export_can_be_verified_by_others(ctl: Ctl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE_ROWS", 1)
    await fill(ctl)
    lines = (await ctl("audit", "export")).out.splitlines()
    previous = "0" * 64
    for line in lines:
        row = json.loads(line)
        given = row.pop("hash")
        assert row["previous"] == previous
        text = json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        previous = hashlib.sha256(text.encode()).hexdigest()
        assert previous == given
    assert len(lines) == len(json.loads((await ctl("audit", "export", "-o", "json")).out)) == 2


async def test_verify(ctl: Ctl, control: Control) -> None:
    await fill(ctl)
    assert (await ctl("audit", "verify", "-o", "name")).out == "sound\n"
    line = f"Nov 24 gatewayd[1]: gatewayd.audit: audit checkpoint {control.audit.store.kept[-1].place}"
    assert (await ctl("audit", "verify", "--checkpoints", "-", stdin=f"x\n{line}\n")).code == 0
    control.audit.store.kept.pop()
    broken = await ctl("audit", "verify", "-o", "json")
    assert broken.code == 1
    problem = json.loads(broken.out)["problems"][0]
    assert (problem["sequence"], problem["message"].startswith("the end of the chain is missing")) == (
        2,
        True,
    )


async def test_following_ends_with_an_interrupt(ctl: Ctl, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(ctl)

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module.time, "sleep", interrupt)
    done = await ctl("audit", "tail", "-f", "-n", "1", "-o", "jsonl")
    assert (done.code, json.loads(done.out)["sequence"]) == (130, 2)

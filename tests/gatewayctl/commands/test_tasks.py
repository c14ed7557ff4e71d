"""gatewayctl task."""

import json

from tests.fakes.daemons.control_socket import Control, Ctl


async def test_list_and_stop(ctl: Ctl, control: Control) -> None:
    ann, bob = await control.accounts.add_user("ann"), await control.accounts.add_user("bob")
    live = control.live
    chat_id = await live.chat(ann)
    first, second, third = live.work(ann, chat_id, "a1"), live.work(ann, chat_id), live.work(bob)
    [shown] = json.loads((await ctl("task", "list", "--user", bob.email, "-o", "json")).out)
    assert (shown["id"], shown["name"], shown["chat_id"]) == (third, "answer", "")
    listed = await ctl("task", "list", "--chat", chat_id, "-o", "name")
    assert listed.out.split() == [first, second]
    assert "a1" in (await ctl("task", "list")).out
    assert (await ctl("task", "stop", third)).out == f"stopped {third}\n"
    stopped = json.loads((await ctl("task", "stop", "--chat", chat_id, "-o", "json")).out)
    assert [task["id"] for task in stopped] == [first, second]
    assert (await ctl("task", "list", "-o", "json")).out == "[]\n"
    assert (await ctl("task", "stop", "--chat", chat_id)).out == "stopped nothing: no task runs\n"


async def test_bad_calls(ctl: Ctl) -> None:
    assert (await ctl("task", "stop")).code == 2
    assert (await ctl("task", "stop", "a", "--chat", "b")).code == 2
    assert (await ctl("task", "stop", "none")).code == 5
    assert (await ctl("task", "stop", "--chat", "none")).code == 5
    assert (await ctl("task", "list", "--chat", "none")).code == 5
    assert (await ctl("task", "list", "--user", "zoe@example.org")).code == 5

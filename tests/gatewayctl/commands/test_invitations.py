"""gatewayctl invitation."""

import json

from tests.fakes.daemons.control_socket import Control, Ctl


async def test_invitations_are_listed_and_revoked(ctl: Ctl, control: Control) -> None:
    assert (await ctl("user", "invite", "ada@example.org", "-o", "name")).code == 0
    listed = json.loads((await ctl("invitation", "list", "-o", "json")).out)
    assert [(row["email"], row["role"]) for row in listed] == [("ada@example.org", "user")]
    assert "ada@example.org" in (await ctl("invitation", "list")).out
    invitation = (await ctl("invitation", "list", "-o", "name")).out.strip()
    revoked = await ctl("invitation", "revoke", invitation, "--yes")
    assert (revoked.code, (await ctl("invitation", "list", "-o", "name")).out) == (0, "")
    assert (await ctl("invitation", "revoke", invitation, "--yes")).code == 5

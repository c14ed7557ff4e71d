"""gatewayctl gc, and the route behind it."""

import json
import os
import time

from tests.fakes.daemons.control_socket import Control, Ctl


async def test_a_dry_run_removes_nothing(ctl: Ctl, control: Control) -> None:
    path = control.documents.stores.blobs.path("orphan01")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"abc")
    day_old = time.time() - 90_000
    os.utime(path, (day_old, day_old))
    shown = json.loads((await ctl("gc", "--dry-run", "-o", "json")).out)
    assert shown[0] == {"kind": "orphaned files", "count": 1, "bytes": 3}
    assert path.exists()
    assert (await ctl("gc", "--older-than", "2d", "-o", "json")).code == 0
    assert path.exists()
    done = await ctl("gc")
    assert (done.code, "orphaned files" in done.out, path.exists()) == (0, True, False)
    row = control.audit.store.kept[-1]
    assert (row.action, row.after) == ("gc", {"orphaned files": 1})


async def test_a_bad_duration(ctl: Ctl) -> None:
    assert (await ctl("gc", "--older-than", "soon")).code == 2

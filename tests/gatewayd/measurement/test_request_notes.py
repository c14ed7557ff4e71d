"""Notes on the present request."""

import asyncio

from gatewayd.measurement.request_notes import CURRENT_NOTES, RequestNotes


async def test_a_task_inherits_the_notes_of_its_request() -> None:
    notes = RequestNotes(1.0)
    token = CURRENT_NOTES.set(notes)
    try:

        async def look() -> RequestNotes | None:
            return CURRENT_NOTES.get()

        assert await asyncio.get_running_loop().create_task(look()) is notes
    finally:
        CURRENT_NOTES.reset(token)
    assert CURRENT_NOTES.get() is None

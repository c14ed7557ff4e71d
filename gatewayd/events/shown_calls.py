"""A call as the subscribers of one node get it."""

from dataclasses import dataclass, field

from gatewayd.events.hub import EVERYBODY, Hub
from gatewayd.events.records import EventCall, Payload
from gatewayd.events.rooms import Subscription


@dataclass(eq=False, slots=True)
class ShownCall:
    """A call, and the ids of the sessions here that have got it.

    It goes to the session of its target. Once it `is_open`, which it is when that session is gone, it goes to
    all sessions of the user on a node that has not that session. One that `is_local` is too large for the
    other nodes.
    """

    call: EventCall
    is_open: bool
    is_local: bool = False
    shown: set[str] = field(default_factory=set)

    def has_session(self, hub: Hub) -> bool:
        """Return whether the session of the target is here."""
        wanted = self.call.target.session_id
        return any(one.opened.session_id == wanted for one in self._listeners(hub))

    def is_heard(self, hub: Hub) -> bool:
        """Return whether the user has a session here."""
        return hub.is_live(self.call.target.user_id, self.call.target.chat_id)

    def show(self, hub: Hub) -> None:
        """Send the call to the sessions here that it is for and that have not got it."""
        found = self._listeners(hub)
        wanted = [one for one in found if one.opened.session_id == self.call.target.session_id]
        if not wanted and self.is_open:
            wanted = found
        new = [one for one in wanted if one.opened.session_id not in self.shown]
        self.shown.update(one.opened.session_id for one in new)
        hub.send(new, payload_of(self.call))

    def show_to_everybody(self, hub: Hub) -> None:
        """Send the call to those who hear the events of all users."""
        hub.send(hub.listeners(EVERYBODY, self.call.target.chat_id), payload_with_user(self.call))

    def _listeners(self, hub: Hub) -> list[Subscription]:
        target = self.call.target
        return list(hub.listeners(target.user_id, target.chat_id))


def payload_of(call: EventCall) -> Payload:
    """Return the payload of a call for subscribers."""
    return {
        "chat_id": call.target.chat_id,
        "message_id": call.target.message_id,
        "call_id": call.id,
        "data": {"type": call.event.type, "data": call.event.data},
    }


def payload_with_user(call: EventCall) -> Payload:
    """Return the payload of a call for those who hear the events of all users."""
    return {"user_id": call.target.user_id, **payload_of(call)}

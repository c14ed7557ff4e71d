"""Tests for gatewayd.chats.services."""

from tests.fakes.chats_site import ChatHouse


def test_the_services_share_their_access() -> None:
    services = ChatHouse().services
    assert services.tags._access is services.chats.access

"""Every provider manages users and groups from its first request to its last, on each database."""

import pytest

from tests.clients.scim import (
    authentik,
    entra,
    entra_compliant,
    jumpcloud,
    keycloak,
    okta,
    okta_wizard,
    onelogin,
    sailpoint,
)
from tests.clients.scim.gateway import TOKEN, Gateway
from tests.clients.scim.player import Player
from tests.clients.scim.story import Story

STORIES = (
    entra.STORY,
    entra_compliant.STORY,
    okta.STORY,
    okta_wizard.STORY,
    onelogin.STORY,
    jumpcloud.STORY,
    authentik.STORY,
    keycloak.STORY,
    sailpoint.STORY,
)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.provider)
def test_a_provider_is_served(gateway: Gateway, story: Story) -> None:
    Player(gateway.url, TOKEN, story).play()

"""Settings of the page: what it may do beyond its strict policy."""

from pydantic_settings import BaseSettings

from gatewayd.settings import types
from gatewayd.settings.fields import PAGE, restart, setting


class PageFields(BaseSettings):
    """The settings of the page."""

    enable_execute_events: types.Switch = setting(
        restart(PAGE),
        False,
        "Whether plugins may run JavaScript in the page by the event execute; the code has all rights of the"
        " reader.",
    )
    embed_hosts: types.EmbedHosts = setting(
        restart(PAGE),
        (),
        "Hosts whose https addresses answers may embed in a frame; addresses of others are shown as links.",
    )
    page_module: types.OptionalFile = setting(
        restart(PAGE),
        None,
        "JavaScript module that the page of every reader loads, for event types of your own plugins.",
    )

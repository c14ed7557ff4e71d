"""Keys of model providers on the wire."""

from pydantic import Field

from gatewayctl.wire.base import Request, Written


class NewProviderKey(Request):
    """A key that takes the place of that of a provider."""

    key: str = Field(min_length=1, max_length=4096)


class ProviderKeyWritten(Written):
    """A provider whose key was replaced; `models` is the number of those that the new key lists.

    `not_tested` is the reason if that does not show whether the key works, "" if the provider accepted it.
    """

    name: str
    base_url: str
    models: int
    not_tested: str = ""

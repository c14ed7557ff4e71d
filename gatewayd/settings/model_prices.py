"""The `[[model_prices]]` tables: what models cost."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from gatewayd.settings.types import ExpectedValue, Line

MAX_DOLLARS = 100_000
"""Maximum of a price in dollars."""

Dollars = Annotated[
    float,
    Field(ge=0, le=MAX_DOLLARS, allow_inf_nan=False, strict=False),
    ExpectedValue("a number of dollars"),
]
OptionalDollars = Annotated[
    Annotated[float, Field(ge=0, le=MAX_DOLLARS, allow_inf_nan=False, strict=False)] | None,
    ExpectedValue("a number of dollars"),
]


class ModelPriceTable(BaseModel):
    """One `[[model_prices]]` table; prices are dollars for a million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    model: Line = Field(
        min_length=1,
        max_length=256,
        description="Canonical name of the models, or their id; * stands for any text.",
    )
    provider: Line = Field("", description="Name of the provider; every provider when empty.")
    prompt: Dollars = Field(description="Price of a million tokens of requests.")
    completion: Dollars = Field(description="Price of a million tokens of answers, with reasoning.")
    cached: OptionalDollars = Field(
        None, description="Price of a million cached tokens of requests; that of others when not set."
    )
    cache_written: OptionalDollars = Field(
        None,
        description="Price of a million tokens that are written to the cache; that of others when not set.",
    )
    request: Dollars = Field(0.0, description="Price of each request.")

"""Headers of limits in the answers of calls."""

from gatewayd.completions.rate_limits import merge_stricter
from gatewayd.metering.records import MeteredCall


def add_limit_headers(call: MeteredCall, headers: dict[str, str]) -> None:
    """Add the headers of those who admitted a call to the headers of its provider."""
    for admission in call.admissions:
        merge_stricter(headers, admission.headers(call))

"""Schemas of health, the version and the public configuration."""

from typing import Any

from gatewayd.http.reply_schemas.accounts import permissions
from gatewayd.http.schemas import BOOLEAN, OBJECT, TEXT, TRUE, listed, record


def status() -> dict[str, Any]:
    """Return the schema of `{"status": true}`."""
    return record(status=TRUE)


def readiness() -> dict[str, Any]:
    """Return the schema of the readiness; `degraded` is present if parts do not work."""
    return record({"degraded": listed(TEXT)}, status=TRUE)


def signed_out() -> dict[str, Any]:
    """Return the schema of a sign-out; `redirect_url` is present if the browser should go there."""
    return record({"redirect_url": TEXT}, status=TRUE)


def version() -> dict[str, Any]:
    """Return the schema of the version of the gateway."""
    return record(version=TEXT, deployment_id=TEXT)


def client_config() -> dict[str, Any]:
    """Return the schema of the public configuration; accounts get more of it."""
    features = record(
        {"enable_api_keys": BOOLEAN},
        auth=BOOLEAN,
        auth_trusted_header=BOOLEAN,
        enable_signup_password_confirmation=BOOLEAN,
        enable_ldap=BOOLEAN,
        enable_signup=BOOLEAN,
        enable_login_form=BOOLEAN,
        enable_websocket=BOOLEAN,
    )
    ui = record(pending_user_overlay_title=TEXT, pending_user_overlay_content=TEXT, response_watermark=TEXT)
    more = {"ui": ui, "onboarding": TRUE, "default_models": {"type": "null"}, "permissions": permissions}
    return record(
        more,
        status=TRUE,
        name=TEXT,
        version=TEXT,
        default_locale=TEXT,
        oauth=record(providers=OBJECT, auto_redirect=BOOLEAN),
        features=features,
    )

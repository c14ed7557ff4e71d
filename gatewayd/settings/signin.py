"""Settings of sign-in: the first administrator, passwords, and limits of sign-in and sign-up."""

from typing import Annotated

from pydantic import SecretStr
from pydantic_settings import BaseSettings

from gatewayd.settings import types
from gatewayd.settings.fields import ACCOUNTS, restart, setting


class SignInFields(BaseSettings):
    """The settings of sign-in."""

    enable_initial_admin_signup: types.Switch = setting(
        restart(ACCOUNTS),
        False,
        "Whether sign-up may create the first account, which is an administrator.",
    )
    webui_admin_email: types.MailOrEmpty = setting(
        restart(ACCOUNTS),
        "",
        "E-mail address of the administrator that a start without accounts creates; none when empty.",
    )
    webui_admin_password: Annotated[SecretStr, types.ExpectedValue("text")] = setting(
        restart(ACCOUNTS), SecretStr(""), "Password of the administrator of webui_admin_email."
    )
    webui_admin_name: types.Line = setting(
        restart(ACCOUNTS),
        "Admin",
        "Name of the administrator of webui_admin_email.",
        min_length=1,
        max_length=128,
    )
    password_min_length: types.Whole = setting(
        restart(ACCOUNTS),
        8,
        "Minimum number of characters of a new password; 15 or more are recommended.",
        ge=8,
        le=64,
    )
    signin_failure_limit: types.Whole = setting(
        restart(ACCOUNTS),
        10,
        "Maximum number of failed sign-ins from one address to one account in 15 minutes.",
        ge=1,
        le=1000,
    )
    signin_address_failure_limit: types.Whole = setting(
        restart(ACCOUNTS),
        100,
        "Maximum number of failed sign-ins from one address to all accounts in 15 minutes.",
        ge=1,
        le=100_000,
    )
    signin_account_failure_limit: types.Whole = setting(
        restart(ACCOUNTS),
        100,
        "Maximum number of failed sign-ins from all unknown addresses to one account in an hour.",
        ge=1,
        le=100_000,
    )
    signup_limit: types.Whole = setting(
        restart(ACCOUNTS), 100, "Maximum number of sign-ups in an hour.", ge=1, le=100_000
    )
    signup_address_limit: types.Whole = setting(
        restart(ACCOUNTS),
        10,
        "Maximum number of sign-ups from one address in an hour.",
        ge=1,
        le=100_000,
    )

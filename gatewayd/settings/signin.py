"""Settings of sign-in: the first administrator, passwords, and how often strangers may try."""

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
        "Whether the first account may be made by sign-up, by whoever comes first; it is an administrator's.",
    )
    webui_admin_email: types.MailOrEmpty = setting(
        restart(ACCOUNTS),
        "",
        "Address of the administrator that a gateway without accounts makes at its start; none when empty.",
    )
    webui_admin_password: Annotated[SecretStr, types.Expect("text")] = setting(
        restart(ACCOUNTS), SecretStr(""), "Password of the administrator that webui_admin_email names."
    )
    webui_admin_name: types.Line = setting(
        restart(ACCOUNTS),
        "Admin",
        "Name of the administrator that webui_admin_email names.",
        min_length=1,
        max_length=128,
    )
    password_min_length: types.Whole = setting(
        restart(ACCOUNTS), 8, "Fewest characters of a password that is chosen; 15 are advised.", ge=8, le=64
    )
    signin_failure_limit: types.Whole = setting(
        restart(ACCOUNTS),
        10,
        "Failed sign-ins of one address on one account in 15 minutes before further ones are refused.",
        ge=1,
        le=1000,
    )
    signin_address_failure_limit: types.Whole = setting(
        restart(ACCOUNTS),
        100,
        "Failed sign-ins of one address on all accounts in 15 minutes before further ones are refused.",
        ge=1,
        le=100_000,
    )
    signin_account_failure_limit: types.Whole = setting(
        restart(ACCOUNTS),
        100,
        "Failed sign-ins of all unknown addresses on one account in an hour before further ones are refused.",
        ge=1,
        le=100_000,
    )
    signup_limit: types.Whole = setting(
        restart(ACCOUNTS), 100, "Sign-ups in an hour before further ones are refused.", ge=1, le=100_000
    )
    signup_address_limit: types.Whole = setting(
        restart(ACCOUNTS),
        10,
        "Sign-ups of one address in an hour before further ones are refused.",
        ge=1,
        le=100_000,
    )

"""`gatewayctl secret`: the signing secret of the gateway, and the keys of its providers."""

from typing import Annotated

import typer

from gatewayctl.command import DryRun, Noun, Session, Yes
from gatewayctl.commands.backups import progress
from gatewayctl.offline.orders import ConfigFile, run_order
from gatewayctl.offline.results import RotatedSecret
from gatewayctl.prompts import confirm, read_secret
from gatewayctl.render import View
from gatewayctl.wire import routes
from gatewayctl.wire.upkeep.providers import NewProviderKey, ProviderKeyWritten

noun = Noun(
    "The signing secret, which signs sessions and encrypts valves, keys and tokens in the database, and the"
    " keys of providers."
)

DAY_SECONDS = 86400
ROTATED: View[RotatedSecret] = View(
    name=lambda row: row.until,
    columns={"SESSIONS UNTIL": lambda row: row.until, "FORMER": lambda row: row.former},
)
REPLACED: View[ProviderKeyWritten] = View(
    name=lambda row: row.name,
    columns={
        "PROVIDER": lambda row: row.name,
        "URL": lambda row: row.base_url,
        "MODELS": lambda row: row.models,
        "KEY": lambda row: f"not tested: {row.not_tested}" if row.not_tested else "accepted",
        "DRY RUN": lambda row: row.dry_run,
    },
)


@noun.verb("rotate", "gatewayctl secret rotate --yes", "gatewayctl secret rotate --overlap-days 0 --yes")
def rotate(
    session: Session,
    overlap_days: Annotated[
        int,
        typer.Option(
            "--overlap-days",
            min=0,
            max=366,
            metavar="DAYS",
            help="Days that present sessions stay valid.",
        ),
    ] = 30,
    yes: Yes = False,
    config: ConfigFile = None,
) -> None:
    """Replace the signing secret. The daemon uses the new one from its next start on.

    That start encrypts everything stored anew, in one transaction; until then the former secret decrypts it.
    Run as root or as the user of the daemon.
    """
    confirm("Replace the signing secret?", yes=yes)
    seconds = overlap_days * DAY_SECONDS
    done = run_order("secret.rotate", progress(session), config, seconds=seconds)
    session.show(RotatedSecret.model_validate(done), ROTATED)
    session.note("Restart the daemon: systemctl restart gatewayd")


@noun.verb(
    "rotate-provider",
    "gatewayctl secret rotate-provider acme --key-file new.key --dry-run",
    "gatewayctl secret rotate-provider acme --key-file - --yes",
)
def rotate_provider(
    session: Session,
    provider: Annotated[str, typer.Argument(metavar="NAME", help="Name of the provider.")],
    key_file: Annotated[
        str,
        typer.Option(
            "--key-file",
            metavar="FILE",
            help="File with the new key of the provider, - for standard input.",
        ),
    ],
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Replace the key of a provider of the database, once the provider has listed its models for the new one.

    New requests use the new key at once, and those under way end with the former one. A key that the provider
    refuses changes nothing. A list that needs no key tests none: the key is replaced, and a warning says that
    it was not tested. The key of a provider of the configuration file is only tested, in a dry run.
    """
    key = read_secret(key_file, "--key-file")
    confirm(f"Replace the key of the provider {provider}?", yes=yes or dry_run)
    body = NewProviderKey(key=key)
    done = session.client.call(routes.REPLACE_PROVIDER_KEY, provider, body=body, dry_run=dry_run)
    session.show(done, REPLACED)
    if done.not_tested:
        session.note(
            f"The key was not tested: {done.not_tested}. A request to a model shows whether it works."
        )

"""`gatewayd --quickstart`: sets up state in a local directory, an administrator, a key and a model."""

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TextIO

from gatewayd import extras
from gatewayd import quickstart_manual as manual_pages
from gatewayd.accounts.records import Actor, CredentialKind, User
from gatewayd.accounts.setup import ALREADY_SET_UP
from gatewayd.assembly.gateway import Gateway
from gatewayd.builtin_model.weights import fetch_weights, find_weights
from gatewayd.errors import GatewayError
from gatewayd.extras import PackageExtra
from gatewayd.http.public.accounts.invitations import link_address
from gatewayd.observe.systemd import SOCKET_VARIABLES
from gatewayd.settings import Settings

STATE_FOLDER: Final = Path("gatewayd-state")
ADMIN_EMAIL: Final = "admin@localhost"
MODEL_SECONDS: Final = 60.0
LOOPBACK: Final = "127.0.0.1"

FIRST_START_MESSAGE: Final = """
gatewayd is ready at {url}

Open it in a browser, signed in (the link works once, within the hour):

  {link}

  administrator  {email}
  password       {password}
  API key        {key}

The password and the key are shown only once. Ask the model:

  curl {url}/v1/chat/completions \\
    -H "Authorization: Bearer {key}" -H "Content-Type: application/json" \\
    -d '{{"model": "{model}", "messages": [{{"role": "user", "content": "Say hello."}}], "max_tokens": 60}}'

With the OpenAI client (pip install openai):

  python3 - <<'PY'
  from openai import OpenAI
  client = OpenAI(base_url="{url}/v1", api_key="{key}")
  messages = [{{"role": "user", "content": "Say hello."}}]
  question = dict(model="{model}", messages=messages, max_tokens=60)
  answer = client.chat.completions.create(**question)
  print(answer.choices[0].message.content)
  for chunk in client.chat.completions.create(**question, stream=True):
      print(chunk.choices[0].delta.content or "", end="", flush=True)
  print()
  PY

From the terminal:

  {ctl} --socket {socket} chat --max-tokens 60 {model} "Say hello."

Stop it with Control-C. The state stays in {state}.
"""

MANUAL_MESSAGE: Final = """
The manual pages are the collection "{name}". Ask about them:

  {ctl} --socket {socket} chat --max-tokens 60 {model} --collection "{name}" \
"How do I issue a key that ends after 90 days?"
  {ctl} --socket {socket} collection query "{name}" "How do I issue a key that ends after 90 days?"
  {ctl} --socket {socket} ingest DIRECTORY --collection my-documents
"""

RESTART_MESSAGE: Final = """
gatewayd is ready at {url}

Open it in a browser, signed in (the link works once, within the hour):

  {link}

The first start created and showed the administrator and the key. Create another link and another key:

  {ctl} --socket {socket} user sign-in-link {email}
  {ctl} --socket {socket} key create {email} another

Stop it with Control-C. The state stays in {state}.
"""


class Quickstart:
    """The additions of a quick start to the ordinary daemon."""

    def __init__(self, folder: Path | None, out: TextIO = sys.stdout) -> None:
        self._state = (folder or STATE_FOLDER).absolute()
        self._out = out

    def overrides(self) -> Mapping[str, Any]:
        """Return the settings that bind the daemon to its own state directory and to the loopback address."""
        return {
            "host": LOOPBACK,
            "data_dir": str(self._state),
            "control_socket": str(self._state / "control.sock"),
            "control_group": "",
            "database_url": "",
            "plugins_dir": str(self._state / "plugins.d"),
            "webui_secret_key": "",
            "scim_token_file": "",
        }

    def environment(self, environ: Mapping[str, str]) -> Mapping[str, str]:
        """Return the environment without sockets of a service manager, which may face the network."""
        return {name: value for name, value in environ.items() if name not in SOCKET_VARIABLES}

    async def prepare(self, settings: Settings) -> None:
        """Fetch the built-in model unless it is present or disabled; the gateway starts without it too."""
        if settings.enable_builtin_model == "false":
            return
        if find_weights(settings.data_dir, settings.builtin_model_path) is not None:
            return
        self._print("Fetching the built-in model (93 MB, once) ...")
        try:
            await fetch_weights(settings.data_dir, self._print)
        except GatewayError as error:
            self._print(f"{error.message}; starting without it")

    async def greet(self, gateway: Gateway) -> None:
        """Create the first administrator and key, wait for the model, and print three calls to copy."""
        settings = gateway.services.settings
        facts = {
            "url": gateway.url,
            "socket": settings.control_socket,
            "state": settings.data_dir,
            "email": ADMIN_EMAIL,
            "ctl": find_command(),
        }
        model = await gateway.first_model(MODEL_SECONDS)
        try:
            created = await gateway.services.accounts.setup.run(ADMIN_EMAIL, "Administrator", None)
        except GatewayError as error:
            if error.code != ALREADY_SET_UP:
                raise
            self._print(RESTART_MESSAGE.format(**facts, link=await _make_link(gateway)))
            return
        facts["model"] = model or "MODEL"
        self._print(
            FIRST_START_MESSAGE.format(
                **facts,
                link=await _make_link(gateway),
                password=created.password_value,
                key=created.key_value,
            )
        )
        if model is None:
            self._print(
                f"No model is ready: {extras.install_command(PackageExtra.LOCAL)}, "
                "or set OPENAI_API_BASE_URLS or OLLAMA_BASE_URLS."
            )
        if await self._ingest_manual(gateway, created.user):
            self._print(MANUAL_MESSAGE.format(**facts, name=manual_pages.COLLECTION))

    async def _ingest_manual(self, gateway: Gateway, owner: User) -> bool:
        """Make the manual pages a collection; if one cannot be searched, print why and return False."""
        pages = manual_pages.find_pages()
        self._print("Reading the manual pages (once) ...")
        actor = Actor(
            owner,
            CredentialKind.CONTROL,
            (),
            gateway.services.accounts.permissions.effective_permissions(owner, ()),
        )
        try:
            problems = await manual_pages.ingest(pages, gateway.services.documents, actor)
        except GatewayError as error:
            problems = [error.message]
        for problem in problems:
            self._print(problem)
        return not problems

    def _print(self, text: str) -> None:
        print(text, file=self._out, flush=True)


async def _make_link(gateway: Gateway) -> str:
    """Return an address with a sign-in link of the administrator, that of the page if it cannot sign in."""
    accounts = gateway.services.accounts
    user = await accounts.users.find_by_email(ADMIN_EMAIL)
    if user is None or not user.active:
        return gateway.url
    _, token = await accounts.links.sign_in_links.create(user, "quickstart")
    return link_address(gateway.url, "link", token)


def find_command() -> str:
    """Return the command gatewayctl for a shell: its name, or its path if it is not in PATH."""
    beside = Path(sys.executable).with_name("gatewayctl")
    return str(beside) if shutil.which("gatewayctl") is None and beside.exists() else "gatewayctl"

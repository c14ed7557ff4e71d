"""Write what is generated from the settings: config/gatewayd.toml and the lists of man/gatewayd.toml.5.

Run from the top of the repository: python -m tests.write_settings_documents
"""

from pathlib import Path

from gatewayd.settings.documents import render_sample, update_manual

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    (ROOT / "config" / "gatewayd.toml").write_text(render_sample())
    page = ROOT / "man" / "gatewayd.toml.5"
    page.write_text(update_manual(page.read_text()))


if __name__ == "__main__":
    main()

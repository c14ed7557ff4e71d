from gatewayd.plugins.open_webui import manifest

MODULES = """
models.users models.files models.chats models.models utils.misc utils.chat storage.provider constants
env config main routers.files
routers.images routers.retrieval routers.memories routers.models models.functions models.tools
models.folders models.groups models.memories models.messages models.config models.feedbacks models.knowledge
internal.db utils.tools utils.middleware utils.access_control utils.logger models.skills models.notes
models.prompts models.channels utils.payload
"""


def test_the_modules_that_plugins_use_most_are_there_in_their_order() -> None:
    assert [module.name for module in manifest.MODULES] == [f"open_webui.{name}" for name in MODULES.split()]


def test_names_stand_once() -> None:
    for module in manifest.MODULES:
        assert module.names
        assert len(set(module.names)) == len(module.names)


def test_packages() -> None:
    for name in ("open_webui", "open_webui.models", "open_webui.apps", "open_webui.apps.webui"):
        assert manifest.is_package(name)
    assert not manifest.is_package("open_webui.models.users")
    assert not manifest.is_package("open_webui.socket")


def test_old_names_are_those_of_today() -> None:
    assert manifest.current_name("open_webui.apps.webui.models.users") == "open_webui.models.users"
    assert manifest.current_name("open_webui.main") == "open_webui.main"

import inspect

from gatewayd.plugins.isolation.plugin import IsolatedPlugin
from gatewayd.plugins.runtime.handles import PluginHandle
from gatewayd.plugins.runtime.instance import PluginInstance


def test_both_kinds_of_plugins_have_the_same_methods() -> None:
    names = [name for name, one in vars(PluginHandle).items() if inspect.isfunction(one) and name[0] != "_"]
    assert len(names) > 15
    for name in names:
        wanted = inspect.signature(getattr(PluginHandle, name)).parameters
        for made in (PluginInstance, IsolatedPlugin):
            assert list(inspect.signature(getattr(made, name)).parameters) == list(wanted), (made, name)

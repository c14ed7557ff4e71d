"""The `open_webui` modules that plugins written for Open WebUI import: gatewayd-plugins(7), IMPORT NAMES.

They reach the gateway only through a `PluginHost`. May be imported by plugins; tests of the manual read
`manifest`.
"""

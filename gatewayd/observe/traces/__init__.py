"""Traces and metrics of OpenTelemetry.

`conventions` has the names, which still change; `telemetry` is the only module that imports the SDK, and is
itself imported by name, if a setting asks for it.
"""

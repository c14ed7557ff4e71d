"""Work on the state of a gateway in a process of its own, whether or not the daemon runs.

`gatewayctl` starts `python -m gatewayd.offline`, which nobody imports, writes one order to it as JSON, and
reads lines of JSON: any number with `progress`, and a last one with `result` or `failure`.
"""

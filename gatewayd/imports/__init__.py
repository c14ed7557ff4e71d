"""Translation of the records of another program, Open WebUI, to records of the gateway.

Pure functions and values; only `gatewayd.offline` reads, decides and stores with them. The schemas are those
of Open WebUI 0.5 to 0.12: columns that a version lacks are absent from its rows.
"""

"""Streamed answers of providers: framing, checks, conversion to chunks."""

"""Streamed answers of providers: framing, checks, chunks."""

import os
import resource

import pytest

from gatewayd.plugins.isolation.memory import MemoryGauge

MB = 1 << 20


def test_memory_is_full_when_most_of_what_the_plugin_left_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    used = 0
    page = resource.getpagesize()
    monkeypatch.setattr(os, "pread", lambda *_: f"1 1 1 1 0 {used * MB // page} 0\n".encode())
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100 * MB, 100 * MB))
    gauge = MemoryGauge()
    found = []
    for base in (0, 90):
        used = base
        gauge.begin()
        for now in (base, 89, 91, 99, 100):
            used = now
            found.append(gauge.is_full)
    assert found == [False, False, True, True, True, False, False, False, False, True]
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert not gauge.is_full


def test_memory_that_this_process_takes_is_seen() -> None:
    gauge = MemoryGauge()
    before = gauge._used()
    taken = bytearray(64 * MB)
    assert 64 * MB <= gauge._used() - before < 80 * MB
    assert len(taken) == 64 * MB

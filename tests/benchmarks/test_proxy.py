"""The proxy: every method learns what it has learnt before."""

import json

import pytest

from helpers.scripts import script

PROXY = script("proxy")


LEARNT = list(PROXY.rows())


@pytest.mark.parametrize("name", LEARNT)
def test_every_method_learns_what_the_proxy_has_kept(name: str) -> None:
    told = PROXY.apart(PROXY.learnt(name)[0], PROXY.kept().get(name, {}))
    assert not told, "if that is meant: python benchmarks/proxy.py --write"


def test_the_proxy_is_of_the_methods_and_settings_of_today() -> None:
    held = json.loads(PROXY.KEPT.read_text(encoding="utf-8"))
    assert [*held["figures"]] == LEARNT and held["settings"] == PROXY.SETTINGS
    assert PROXY.apart({"a": 1.0, "b": 2.0}, {"a": 1.0 + 5e-7, "c": 3.0}) == [
        "c None was 3.0",
        "b 2.0 was None",
    ]
    assert PROXY.apart({"a": -1.0}, {"a": -1.00001}) == ["a -1.0 was -1.00001"]
    assert PROXY.apart({"a": float("nan")}, {"a": 1.0}) == ["a nan was 1.0"]

"""The declarations of settings agree with each other and with the rules that fill settings in."""

from typing import Any

import pytest

from jioc.config import SECTIONS, flat, index, make
from jioc.data.catalogue import DATASETS
from jioc.methods import SPECS
from jioc.resolve.derive import RULES, Known, resolve

EVERY = index.every()


def test_every_setting_that_follows_from_others_has_a_rule_and_every_rule_such_a_setting() -> None:
    assert {path for path, setting in EVERY.items() if setting.follows} == RULES.keys()


def test_a_rule_uses_only_what_its_setting_is_declared_to_follow_from() -> None:
    values = flat(resolve(make(method="bic", later={"epochs": 34, "lr": 0.05})).model_dump())
    for path, rule in RULES.items():
        declared = {name: values[name] for name in index.setting(path).follows}
        known = [Known(v, SPECS["bic"], DATASETS["digits"]) for v in (declared, values)]
        assert rule(known[0]) == rule(known[1]), path


def test_a_rule_stands_after_those_that_it_follows_from() -> None:
    done: set[str] = set()
    for path in RULES:
        assert RULES.keys() & index.setting(path).follows <= done, path
        done.add(path)


@pytest.mark.parametrize("kind", ["follows", "excludes", "resets"])
def test_every_setting_that_a_declaration_names_exists(kind: str) -> None:
    for path, setting in EVERY.items():
        named: Any = setting.follows if kind == "follows" else getattr(setting.about, kind)
        assert set(named) <= EVERY.keys(), path


def test_every_setting_has_help_and_a_section() -> None:
    for path, setting in EVERY.items():
        assert setting.field.description, path
        assert path == "method" or setting.heading in SECTIONS, path

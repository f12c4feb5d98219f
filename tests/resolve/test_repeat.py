"""The line that repeats a run repeats it."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from helpers.trees import class_folders
from jioc.cli.flags import Parser, add_settings, given_values
from jioc.config import Config, index
from jioc.config import values as settings
from jioc.methods import SPECS, find_method
from jioc.resolve import recipes, repeat
from jioc.resolve.derive import resolve
from jioc.resolve.overlay import overlay
from jioc.resolve.validate import unused


def repeated(config: Config) -> Config:
    """The settings that `jioc run` makes of the line of a run."""
    argv = repeat.argv(config)
    spec = find_method(argv[0])
    parser = Parser()
    parser.add_argument("method")
    add_settings(parser, spec, None)
    values = given_values(parser.parse(argv), spec.options)
    config = resolve(settings.make(**values))
    unused(config)  # refuses what has no effect and was not chosen
    return config


@pytest.mark.parametrize("name", recipes.RECIPES)
def test_the_line_of_a_run_gives_its_settings(name: str) -> None:
    every = [values for values in recipes.find_recipe(name).make().values() if "order" not in values]
    for values in every[::7]:  # a class order has no flag, and is repeated from the run's config.yaml
        config = resolve(settings.make(**values, seed=3))
        assert repeated(config) == config


@given(
    method=st.sampled_from(sorted(SPECS)),
    data=st.sampled_from(["digits", "cifar100"]),
    seed=st.integers(0, 9),
    init_seed=st.none() | st.integers(0, 9),
    epochs=st.none() | st.integers(1, 400),
    first=st.none() | st.integers(1, 400),
    lr=st.none() | st.floats(1e-4, 1),
    rate=st.fixed_dictionaries(
        {
            "decay": st.sampled_from([None, "steps", "cosine"]),
            "milestones": st.sampled_from([None, (), (3, 9), (500,)]),
        }
    ),
    flip=st.none() | st.booleans(),
    compiled=st.none() | st.booleans(),
    mean=st.none() | st.just((0.25,)),
    kd_t2=st.booleans(),
    memory_per_class=st.none() | st.integers(1, 50),
)
@examples(max_examples=40, deadline=None)
def test_the_line_of_any_run_gives_its_settings(
    epochs: int | None,
    first: int | None,
    lr: float | None,
    rate: Any,
    compiled: bool | None,
    kd_t2: bool,
    **other: Any,
) -> None:
    given: dict[str, Any] = {
        "later": {"epochs": epochs, "lr": lr, **rate}, "first": {"epochs": first}, "compile": compiled,
        "coordination": {"coordinate": "none", "kd_t2": kd_t2},
    }  # fmt: skip
    config = resolve(settings.make(**other, **given, device="cpu", checkpoint_every=7))
    differs = settings.differences(settings.plain(repeated(config)), settings.plain(config))
    assert set(differs) <= index.MACHINE
    assert (
        resolve(settings.make(**overlay(settings.plain(config), {}))) == config
    )  # and so does its config.yaml


def test_the_line_of_a_run_lists_its_data_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class_folders(tmp_path, {"a": 1, "b": 1})
    (tmp_path / "x.csv").write_text("path,label\na/0.png,a\nb/0.png,b\n")
    config = resolve(settings.make(method="icarl", data=str(tmp_path / "x.csv"), later={"lr": 0.2}))
    listed: list[Path] = []
    monkeypatch.setattr(
        "jioc.data.images.listing.class_names", lambda place: listed.append(place) or ["a", "b"]
    )
    assert repeat.argv(config) == ["icarl", "--data", str(tmp_path / "x.csv"), "--lr", "0.2", "--seed", "1"]
    assert len(listed) == 1


def test_a_class_order_is_repeated_from_the_runs_own_file() -> None:
    config = settings.make(method="icarl", order=tuple(range(10)))
    assert repeat.line(config) == "jioc run icarl --config config.yaml"

"""A grid: which runs, each as if alone, killed anywhere it goes on, and one that fails does not stop the others."""

import errno
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import yaml

from helpers.results import made
from helpers.runs import complete, events, figures, outcome
from helpers.trees import class_folders, write_digits
from jioc.cli import grid
from jioc.cli.main import main
from jioc.config import values as settings
from jioc.errors import Failed, Interrupted, Refused
from jioc.events import Callback, Epoch, Event
from jioc.grid import options as launch
from jioc.grid import ray as on_ray
from jioc.grid import slurm as on_slurm
from jioc.grid.pack import pack
from jioc.grid.plan import Job, plan, select
from jioc.grid.ray import Keeper, packed, unpacked
from jioc.methods.registry import find
from jioc.resolve import recipes
from jioc.resolve.derive import resolve
from jioc.resolve.recipe_file import scaled
from jioc.results import Result
from jioc.training.run import run
from jioc.training.store import refuse_other_settings

BASE: dict[str, Any] = {
    "method": "icarl", "task_sizes": [4, 3, 3], "memory": 60, "later": {"epochs": 3}, "first": {"epochs": 4},
    "device": "cpu", "checkpoint_every": 0,
}  # fmt: skip


def file(folder: Path, **content: Any) -> str:
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump({"base": BASE, "seeds": [1, 2]} | content))
    return str(path)


BOTH = {"matrix": {"coordination.coordinate": ["none", "jioc"]}}


def refused(words: list[str], capsys: pytest.CaptureFixture[str], status: int = 2) -> str:
    assert main(words) == status
    told = capsys.readouterr().err
    assert told.startswith("jioc: ") and told.count("\n") == 1
    return told


def test_killed_half_way_a_grid_goes_on_and_ends_as_if_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["grid", file(tmp_path, **BOTH), "--seeds", "1", "--out"]
    assert main([*words, str(tmp_path / "alone"), "--pack", "2"]) == 0
    killed = tmp_path / "killed"
    child = subprocess.Popen([sys.executable, "-m", "jioc", *words, str(killed)], stdout=subprocess.DEVNULL)
    while child.poll() is None and not (
        complete(killed) and list(killed.glob("jioc-seed1/checkpoint/*/now"))
    ):
        time.sleep(0.01)
    assert child.poll() is None, "the grid ended before it could be killed"
    child.kill()
    child.wait()
    before = {name: (killed / name / "result.json").stat().st_mtime_ns for name in complete(killed)}
    capsys.readouterr()
    assert main([*words, str(killed)]) == 0
    told = capsys.readouterr().out
    assert (
        "2 runs" in told
        and f"{len(before)} finished before" in told
        and complete(killed) == ["jioc-seed1", "none-seed1"]
    )
    for name in complete(tmp_path / "alone"):
        assert outcome(killed / name) == outcome(tmp_path / "alone" / name)
    noted = [line["run"] for line in events(killed) if line["event"] == "finished"]
    assert len(set(noted)) == len(noted) and set(complete(killed)) - set(noted) <= set(
        before
    )  # killed before its note
    for name, written in before.items():
        assert (killed / name / "result.json").stat().st_mtime_ns == written and f"{name}  begins" not in told


def test_a_run_of_a_grid_is_the_run_alone_and_its_line_repeats_it(tmp_path: Path) -> None:
    assert (
        main(
            [
                "grid",
                file(tmp_path, **BOTH),
                "--seeds",
                "3",
                "--only",
                "jioc",
                "--out",
                str(tmp_path / "grid"),
            ]
        )
        == 0
    )
    kept = json.loads((tmp_path / "grid" / "jioc-seed3" / "result.json").read_bytes())
    alone = run(**BASE | {"coordination": {"coordinate": "jioc"}, "seed": 3})
    assert figures(kept) == figures(alone)
    words = kept["command"].split()
    assert words[:3] == ["jioc", "run", "icarl"]
    assert main([*words[1:], "--out", str(tmp_path / "line"), "--device", "cpu"]) == 0
    assert figures(json.loads((tmp_path / "line" / "result.json").read_bytes())) == figures(kept)


def test_the_settings_of_a_run_serve_as_a_base_and_its_seed_gives_way(tmp_path: Path) -> None:
    kept = settings.plain(resolve(settings.make(**BASE, seed=4)))
    recipe = recipes.find(
        file(tmp_path, base=kept, matrix={"coordination.coordinate": ["none"]}, seeds=[1, 2, 2])
    )
    jobs = plan(recipe, recipe.seeds, None, 1, lambda spec: {}, tmp_path)
    assert [(j.config.seed, j.config.init_seed, j.config.data_seed) for j in jobs] == [(1, 1, 1), (2, 2, 2)]
    own = file(tmp_path, base=BASE | {"seed": 4, "data_seed": 9}, matrix={"init_seed": [5]})
    (job,) = plan(recipes.find(own), [3], None, 1, lambda spec: {}, tmp_path)
    assert (job.config.seed, job.config.init_seed, job.config.data_seed) == (3, 5, 9)


@pytest.mark.parametrize("content", [{"matrix": {"seed": [1, 2]}}, {"runs": {"a": {"seed": 7}}}])
def test_a_seed_among_the_changes_is_refused(
    content: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "seeds: [1, 2, 3]" in refused(["grid", file(tmp_path, **content), "--dry-run"], capsys)


def test_runs_of_unlike_arithmetic_do_not_meet_in_one_process() -> None:
    seen = []

    def watch(i: int) -> Callback:
        def tell(event: Event) -> None:
            if isinstance(event, Epoch):
                seen.append((i, torch.backends.cudnn.deterministic, torch.backends.cuda.matmul.allow_tf32))

        return tell

    changes: tuple[dict[str, Any], ...] = (
        {"deterministic": True},
        {"precision": "tf32"},
        {"deterministic": True},
    )
    with torch_as_it_was():
        found = pack([resolve(settings.make(**BASE | change)) for change in changes], 3, callback=watch)
    assert all(isinstance(result, Result) for result in found)
    assert {*seen} == {(0, True, False), (1, False, True), (2, True, False)}


def test_a_packed_run_whose_folder_is_taken_is_refused_before_images_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taken").write_text("by another")
    monkeypatch.setattr("jioc.grid.pack.load", lambda *args: pytest.fail("images were read first"))
    (found,) = pack([resolve(settings.make(**BASE))], 1, outs=[tmp_path])
    assert isinstance(found, Refused) and "holds other files" in str(found)


@contextmanager
def torch_as_it_was() -> Iterator[None]:
    b, algorithms = torch.backends, torch.are_deterministic_algorithms_enabled()
    before = b.cudnn.deterministic, b.cudnn.benchmark, b.cudnn.allow_tf32, b.cuda.matmul.allow_tf32
    yield
    b.cudnn.deterministic, b.cudnn.benchmark, b.cudnn.allow_tf32, b.cuda.matmul.allow_tf32 = before
    torch.use_deterministic_algorithms(algorithms)


def test_other_images_under_the_same_name_are_not_taken_for_a_finished_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, digits in (("here", "0123"), ("there", "0124")):
        (tmp_path / place).mkdir()
        write_digits(tmp_path / place / "photos", digits, 12)
    small = {"task_sizes": [2, 2], "memory": 8, "backbone": "tiny"}
    recipe = file(tmp_path, base=BASE | small, matrix={"coordination.coordinate": ["none"]}, seeds=[1])
    words = ["grid", recipe, "--out", str(tmp_path / "out"), "--data"]
    monkeypatch.chdir(tmp_path / "here")
    absolute = str(tmp_path / "here" / "photos")
    assert main([*words, absolute]) == main([*words, "photos"]) == main([*words, "photos/"]) == 0
    capsys.readouterr()
    assert "photos' are not those of the run in" in refused(
        [*words, str(tmp_path / "there" / "photos")], capsys
    )
    monkeypatch.chdir(tmp_path / "there")
    assert "'photos' are not those of the run in" in refused([*words, "photos"], capsys)
    (tmp_path / "here" / "photos" / "0" / "3.png").unlink()
    assert "photos' are not those of the run in" in refused([*words, absolute, "--seeds", "1", "2"], capsys)


def test_a_folder_is_not_the_data_set_of_its_name(tmp_path: Path) -> None:
    ours = settings.plain(resolve(settings.make(method="icarl", data="digits")))
    for kept, wanted in (("lost/digits", "digits"), ("digits", "lost/digits")):
        with pytest.raises(Refused, match="holds another run: data differ"):
            refuse_other_settings(tmp_path, ours | {"data": kept}, settings.make(**ours | {"data": wanted}))
    refuse_other_settings(tmp_path, ours | {"data": "lost/own"}, settings.make(**ours | {"data": "found/own"}))


def test_a_failed_run_is_told_kept_and_does_not_stop_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JIOC_DATA", raising=False)
    runs = {"bad": {"data": "cifar10", "data_dir": str(tmp_path), "task_sizes": None, "tasks": 5}, "good": {}}
    words = ["grid", file(tmp_path, runs=runs, seeds=[1]), "--out", str(tmp_path / "out")]
    assert "1 of 2 runs failed" in refused(words, capsys, status=1)
    assert complete(tmp_path / "out") == ["good-seed1"]
    kept = json.loads((tmp_path / "out" / "failures.json").read_text())
    assert list(kept) == ["bad-seed1"] and "cifar-10-batches-py" in kept["bad-seed1"]
    assert main([*words, "--only", "good"]) == 0 and (tmp_path / "out" / "failures.json").exists()


def test_a_full_disk_does_not_keep_a_grid_from_telling_its_failures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.delenv("JIOC_DATA", raising=False)
    monkeypatch.setattr("jioc.files.os.fsync", full)
    monkeypatch.setattr("jioc.grid.plan.os.write", full)
    bad = {"data": "cifar10", "data_dir": str(tmp_path), "task_sizes": None, "tasks": 5}
    assert main(["grid", file(tmp_path, runs={"bad": bad}), "--out", str(tmp_path / "out")]) == 1
    told = capsys.readouterr()
    assert told.err == "jioc: 2 of 2 runs failed; the same command tries them again\n"
    assert told.out.count("\nfailed: bad-seed") == 2
    assert "failures.json' cannot be brought up to date: No space left on device\n" in told.out


def test_a_finished_grid_on_a_read_only_disk_is_finished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def frozen(*given: Any, **more: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    words = ["grid", file(tmp_path, runs={"plain": {}}), "--seeds", "1", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    monkeypatch.setattr(Path, "unlink", frozen)
    monkeypatch.setattr(Path, "mkdir", frozen)
    capsys.readouterr()
    assert main(words) == 0
    assert capsys.readouterr().out.endswith("the run is finished\n")
    (tmp_path / "out" / "failures.json").write_text('{"plain-seed1": "out of memory"}')
    assert main(words) == 0
    assert "cannot be brought up to date: Read-only file system" in capsys.readouterr().out


def test_an_interrupted_grid_says_so_and_begins_no_other_run(
    tmp_path: Path,
) -> None:
    asked = itertools.count()
    with pytest.raises(Interrupted, match="0 of 4 runs are finished"):
        grid._main([file(tmp_path, **BOTH), "--out", str(tmp_path / "out")], lambda: next(asked) > 3)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["grid.jsonl", "none-seed1"]
    assert [line["event"] for line in events(tmp_path / "out")] == ["begins", "stopped"]


def test_a_grid_tells_the_notes_of_its_data_and_can_be_stopped_while_images_are_decoded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pictures = class_folders(tmp_path / "pictures", {"a": 6, "b": 6})
    (pictures / "a" / "broken.png").write_bytes(b"no image")
    few = BOTH | {"base": BASE | {"data": str(pictures), "task_sizes": [1, 1], "image_size": 8, "memory": 4}}
    words = [file(tmp_path, **few), "--seeds", "1", "--data-cache", str(tmp_path / "cache")]
    words += ["--out", str(tmp_path / "out")]
    asked = itertools.count()
    with pytest.raises(Interrupted, match="0 of 2 runs are finished"):
        grid._main(words, lambda: next(asked) > 0)  # once before the run, then as the first image is decoded
    assert not (tmp_path / "out").exists() and not list((tmp_path / "cache").glob("*/about.json"))
    assert grid._main(words, lambda: False) == 0
    assert capsys.readouterr().out.count("'a/broken.png'") == 1


def test_a_grid_leaves_before_its_time_limit_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["grid", file(tmp_path, **BOTH), "--out", str(tmp_path / "out"), "--seeds", "1"]
    assert "0 of 2 runs are finished" in refused([*words, "--time-limit", "0.001"], capsys, status=75)
    assert main([*words, "--time-limit", "1h"]) == 0 and len(complete(tmp_path / "out")) == 2


def test_dry_run_lists_and_touches_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grid", file(tmp_path, **BOTH), "--dry-run", "--out", str(tmp_path / "out")]) == 0
    told = capsys.readouterr().out
    assert (
        told.count("not begun") == 4
        and "--coordinate jioc --seed 2" in told
        and not (tmp_path / "out").exists()
    )


@pytest.mark.parametrize(("recipe", "beside"), [("table6", True), ("study", False)])
def test_a_finished_grid_speaks_of_the_paper_where_the_paper_has_its_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], recipe: str, beside: bool
) -> None:
    wanted = recipes.find(recipe)
    for job in plan(wanted, (1,), ["*jioc"], wanted.scale, lambda spec: {}, tmp_path):
        job.folder.mkdir()
        ran = made(classes=100, tasks=10) | {"config": settings.plain(job.config)}
        (job.folder / "result.json").write_text(json.dumps(ran))
    assert main(["grid", recipe, "--only", "*jioc", "--seeds", "1", "--out", str(tmp_path)]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("the run is finished") and ("--paper" in last) == beside


def test_wrong_words_are_refused_before_any_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path / "out")]
    good = file(tmp_path, **BOTH)
    assert "did you mean 'table6'?" in refused(["grid", "tabel6", *out], capsys)
    assert "did you mean '--seeds'?" in refused(["grid", good, *out, "--seed", "1", "--sees", "2"], capsys)
    assert "takes --seeds" in refused(["grid", good, *out, "--seed", "1"], capsys)
    assert "whole numbers" in refused(["grid", good, *out, "--seeds", "one"], capsys)
    assert "no run's name holds 'oc-x'" in refused(["grid", good, *out, "--only", "oc-x"], capsys)
    assert "at least 1" in refused(["grid", good, *out, "--pack", "0"], capsys)
    assert "above 0" in refused(["grid", good, *out, "--scale", "-1"], capsys)
    assert "--memory" in refused(["grid", good, *out, "--memory", "lots"], capsys)
    assert "did you mean 'slurm'?" in refused(["grid", good, *out, "--on", "slrum"], capsys)
    assert "is for ray" in refused(["grid", good, *out, "--address", "auto"], capsys)
    assert "is for local" in refused(["grid", good, *out, "--on", "ray", "--pack", "2"], capsys)
    assert "as its first word" in refused(["grid", *out], capsys)
    for content, told in [
        ({"rums": {}}, "unknown setting 'rums'"), ({}, "neither runs nor a matrix"),
        (BOTH | {"seeds": []}, "nothing to run"), ({"matrix": {"memory": []}}, "memory has no values in the matrix"),
        ({"runs": {"a/b": {}}}, "cannot name a folder"), ({"runs": {"a": {"method": "icalr"}}}, "'icarl'?"),
        ({"runs": {"a": {"memry": 3}}}, "unknown setting 'memry'"), ({"base": {}, "runs": {"a": {}}}, "has no method"),
    ]:  # fmt: skip
        place = file(tmp_path, **content)
        said = refused(["grid", place, *out], capsys)
        assert told in said and (place in said or told == "nothing to run")
    assert not (tmp_path / "out").exists()


def test_a_folder_with_another_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["grid", file(tmp_path, **BOTH), "--out", str(tmp_path / "out"), "--only", "none", "--seeds", "1"]
    assert main(words) == 0
    before = (tmp_path / "out" / "none-seed1" / "result.json").read_bytes()
    capsys.readouterr()
    assert "holds another run: memory differ" in refused([*words, "--memory", "50"], capsys)
    assert main([*words, "--checkpoint-every", "9"]) == 0  # the machine's settings may differ
    assert (tmp_path / "out" / "none-seed1" / "result.json").read_bytes() == before


def test_a_file_combines_runs_and_matrix(tmp_path: Path) -> None:
    content = {
        "runs": {"a": {}, "b": {"coordination": {"coordinate": "jioc"}}},
        "matrix": {"memory": [40, 50]},
    }
    made = recipes.find(file(tmp_path, **content)).make()
    assert list(made) == ["a-memory-40", "a-memory-50", "b-memory-40", "b-memory-50"]
    assert made["b-memory-50"]["memory"] == 50 and made["b-memory-50"]["coordination"] == {
        "coordinate": "jioc"
    }
    with pytest.raises(Refused, match="two runs are called 'memory-40'"):
        recipes.find(file(tmp_path, matrix={"memory": [40, 40]}))


def test_only_takes_a_whole_name_before_a_part() -> None:
    named: dict[str, Any] = {"jioc": {}, "jioc-temperature-4": {}, "oc-temperature-4": {}, "none": {}}
    assert list(select(named, ["jioc"])) == ["jioc"]
    assert list(select(named, ["jioc-"])) == ["jioc-temperature-4"]
    assert list(select(named, ["oc-*"])) == ["oc-temperature-4"]
    assert list(select(named, ["none", "jioc*4"])) == ["jioc-temperature-4", "none"]


def test_a_scaled_schedule_is_shorter_throughout() -> None:
    config = resolve(settings.make(**scaled({"method": "foster"}, find("foster"), 0.1)))
    assert (config.later.epochs, config.first.epochs, config.second.epochs) == (17, 20, 13)
    given = scaled({"method": "icarl", "first": {"epochs": 100, "milestones": [40, 80]}}, find("icarl"), 0.1)
    first = resolve(settings.make(**given)).first
    assert (first.epochs, first.milestones) == (10, (4, 8))
    given = scaled({"method": "icarl", "first": {"epochs": 100, "milestones": [40, 80]}}, find("icarl"), 0.01)
    assert resolve(settings.make(**given)).first.milestones == (1,)


@pytest.mark.parametrize("wrong", [{"later": 3}, {"first": {"milestones": 5}}, {"later": {"epochs": "many"}}])
def test_what_is_no_schedule_is_refused_before_it_is_scaled(wrong: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="is refused"):
        scaled({"method": "icarl"} | wrong, find("icarl"), 0.1)
    quoted = scaled({"method": "icarl", "later": {"epochs": "17"}}, find("icarl"), 0.1)  # as YAML may have it
    assert quoted["later"]["epochs"] == 2


# --- elsewhere, without a cluster ---


@pytest.mark.parametrize(("place", "extra"), [("ray", "ray"), ("slurm", "submitit")])
def test_without_its_extra_a_launcher_says_what_to_install(
    place: str,
    extra: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, extra, None)
    told = refused(["grid", file(tmp_path, **BOTH), "--on", place, "--out", str(tmp_path / "out")], capsys)
    assert f"pip install 'jioc[{place}]'" in told and not (tmp_path / "out").exists()


def job(folder: Path, **change: Any) -> Job:
    return Job(folder.name, resolve(settings.make(**BASE | change)), folder)


def half_way(folder: Path) -> None:
    asked = itertools.count()
    with pytest.raises(Interrupted):
        run(**BASE, out=folder, stop=lambda: next(asked) == 30)


def test_a_run_goes_on_from_its_packed_folder(tmp_path: Path) -> None:
    run(**BASE, out=tmp_path / "alone")
    half_way(tmp_path / "here")
    unpacked(packed(tmp_path / "here", whole=False), tmp_path / "there")
    assert len(list((tmp_path / "there" / "checkpoint").iterdir())) == 1
    run(**BASE, out=tmp_path / "there", resume=True)
    unpacked(packed(tmp_path / "there", whole=True), tmp_path / "here")  # over what was there
    assert outcome(tmp_path / "here") == outcome(tmp_path / "there") == outcome(tmp_path / "alone")


def test_a_folder_whose_unpacking_was_cut_short_anywhere_goes_on_to_the_same_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the driver is killed while the keeper writes."""
    short = BASE | {"task_sizes": [5, 5], "memory": 20, "first": {"epochs": 1}, "later": {"epochs": 2}}
    run(**short, out=tmp_path / "alone")
    asked = itertools.count()
    with pytest.raises(Interrupted):
        run(**short, out=tmp_path / "run", stop=lambda: next(asked) == 10)
    files = packed(tmp_path / "run", whole=False)
    assert "result.json" in files and f"checkpoint/{on_ray.newest(tmp_path / 'run')}/now" in files
    for cut in range(len(files)):
        writes = itertools.count()

        def write(path: Path, content: bytes, writes: Any = writes, cut: int = cut) -> None:
            if next(writes) == cut:
                raise InterruptedError
            path.write_bytes(content)

        with monkeypatch.context() as patched:
            patched.setattr(on_ray, "write", write)
            with pytest.raises(InterruptedError):
                unpacked(files, tmp_path / f"{cut}")
        unpacked(packed(tmp_path / f"{cut}", whole=True), tmp_path / f"{cut}-on")
        run(**short, out=tmp_path / f"{cut}-on", resume=True)
        assert outcome(tmp_path / f"{cut}-on") == outcome(tmp_path / "alone"), cut


def test_a_complete_result_travels_with_its_model_or_not_at_all(tmp_path: Path) -> None:
    run(**BASE, out=tmp_path / "run")
    assert not {"result.json", "model.safetensors"} & packed(tmp_path / "run", whole=False).keys()
    unpacked(packed(tmp_path / "run", whole=True), tmp_path / "copy")
    names = {path.name for path in (tmp_path / "run").iterdir()} - {".lock"}
    assert (
        {path.name for path in (tmp_path / "copy").iterdir()} == names > {"result.json", "model.safetensors"}
    )


def test_what_changes_while_it_is_packed_is_not_sent_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(**BASE, out=tmp_path / "run")
    path = tmp_path / "run" / "result.json"
    complete = path.read_bytes()
    path.write_text(json.dumps(json.loads(complete) | {"complete": False}))

    def read_json(at: Path) -> Any:
        found = json.loads(at.read_bytes())
        if at == path:
            path.write_bytes(complete)  # the run ends now
        return found

    monkeypatch.setattr(on_ray, "read_json", read_json)
    assert not json.loads(packed(tmp_path / "run", whole=False)["result.json"])["complete"]
    assert "result.json" not in packed(tmp_path / "run", whole=False)
    next((tmp_path / "run" / "checkpoint").glob(f"{on_ray.newest(tmp_path / 'run')}/begin")).unlink()
    with pytest.raises(FileNotFoundError):
        packed(tmp_path / "run", whole=False)


def test_without_an_address_a_cluster_is_started_whatever_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    asked = []
    ray = SimpleNamespace(init=lambda address, **options: asked.append(address))
    on_ray._connect(ray, launch.make(on="ray"))
    on_ray._connect(ray, launch.make(on="ray", address="auto"))
    assert asked == ["local", "auto"]


def test_the_keeper_turns_away_what_another_try_has_overtaken(tmp_path: Path) -> None:
    half_way(tmp_path / "first")
    old = packed(tmp_path / "first", whole=False)
    run(**BASE, out=tmp_path / "first", resume=True)
    done = packed(tmp_path / "first", whole=True)
    (tmp_path / "kept").mkdir()
    keeper = Keeper([job(tmp_path / "kept" / "a")])
    first = keeper.begin("a", "here", 1)
    assert first == (1, {}) and keeper.take("a", 1, old, None) is None and keeper.go_on("a", 1)
    second = keeper.begin("a", "there", 2)
    assert second is not None and second[0] == 2 and second[1].keys() == old.keys()
    overtaken = "another try has overtaken this one"
    assert not keeper.go_on("a", 1) and keeper.take("a", 1, done, "finished") == overtaken
    assert keeper.take("a", 2, done, "finished") is None and keeper.take("a", 2, old, None) == overtaken
    assert keeper.begin("a", "here", 3) is None  # finished
    assert [line["event"] for line in events(tmp_path / "kept")] == ["begins", "begins", "finished"]


def test_one_folder_one_keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    first, second = (Keeper([job(tmp_path / "a")]) for _ in range(2))
    assert first.hold() is None and second.hold() == f"another grid is at work in {str(tmp_path)!r}"
    first.lock.close()  # its process died
    assert second.hold() is None
    second.lock.close()


def no_room(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_under_a_keeper_or_a_queue_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = "No space left on device; with that mended, the same command goes on"
    keeper = Keeper([job(tmp_path / "out" / "a")])
    monkeypatch.setattr(Path, "mkdir", no_room)
    assert (
        keeper.hold() == f"the runs' folder {str(tmp_path / 'out')!r} cannot be used: No space left on device"
    )
    keeper.begin("a", "here", 1)
    files = {"config.yaml": b"method: icarl"}
    assert (
        keeper.take("a", 1, files, None)
        == f"the run cannot be kept in {str(tmp_path / 'out' / 'a')!r}: {again}"
    )

    executor = SimpleNamespace(update_parameters=lambda **_: None, batch=no_room)
    monkeypatch.setattr(
        on_slurm, "_submitit", lambda: SimpleNamespace(AutoExecutor=lambda *_, **__: executor)
    )
    for full in ("batch", "slurm.json"):
        if full == "slurm.json":
            executor.batch, executor.submit = nullcontext, lambda work: SimpleNamespace(job_id="1")
            monkeypatch.setattr(on_slurm, "write", no_room)
        with pytest.raises(Failed, match=f"^jobs cannot be kept in {str(tmp_path)!r}: {again}$"):
            on_slurm.Queue(tmp_path, launch.make(on="slurm")).submit([job(tmp_path / "a")])


def test_a_run_whose_folder_cannot_be_kept_says_so_and_is_not_tried_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", ray := SimpleNamespace(get=lambda found: found))
    monkeypatch.setattr(ray, "exceptions", SimpleNamespace(RayError=RuntimeError), raising=False)
    keeper = Keeper([job(tmp_path / "out" / "a")])
    there = SimpleNamespace(
        **{name: SimpleNamespace(remote=getattr(keeper, name)) for name in ("begin", "go_on", "take")}
    )
    config = keeper.jobs["a"].config
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").write_text("in the way")
    told = on_ray.work("a", config, there, 60.0, os.getcwd(), {})
    assert told is not None and told.startswith(
        f"the run cannot be kept in {str(tmp_path / 'out' / 'a')!r}: "
    )
    monkeypatch.setattr(on_ray, "unpacked", no_room)
    told = on_ray.work("a", config, there, 60.0, os.getcwd(), {})
    assert told is not None and told.endswith("cannot be used: No space left on device")


def test_a_slurm_job_asks_for_what_was_said() -> None:
    where = launch.make(
        on="slurm", gpus_per_run=2, time_limit="90m", at_once=4, sbatch=("partition=gpu", "mem=8G")
    )
    assert on_slurm.parameters(where) == {
        "name": "jioc", "timeout_min": 90, "gpus_per_node": 2, "cpus_per_task": 1, "slurm_array_parallelism": 4,
        "slurm_signal_delay_s": 120, "slurm_additional_parameters": {"partition": "gpu", "mem": "8G"},
    }  # fmt: skip
    for wrong in ({"gpus_per_run": 0.5}, {"sbatch": ("partition",)}, {"time_limit": "soon"}):
        with pytest.raises(Refused, match="--"):
            on_slurm.parameters(launch.make(on="slurm", **wrong))

"""The benchmarks of speed and of several processes."""

from argparse import Namespace
from pathlib import Path

import pytest

from helpers.paths import ROOT
from helpers.scripts import script


def test_the_benchmark_of_processes_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    words = Namespace(backbone="tiny", stem="cifar", device="cpu", batch_size=128, epochs=2, each=5)
    found = script("scale").work("one process", words)
    assert found["images_per_second"] > 0 and found["gradient_bytes"] > found["statistics_bytes"] > 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--epochs", "1"], "the first is not timed"),
        (["--json", "nowhere/speed.json"], "there is no folder 'nowhere'"),
        (["--backbone", "resnet33"], "resnet33"),
    ],
)
def test_speeds_that_cannot_be_measured_or_kept_are_refused_first(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert script("speed").main(["--device", "cpu", *words]) == 2
    found = capsys.readouterr()
    assert sentence in found.err and not found.out


def test_a_file_of_no_speeds_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.json").write_text("{}")
    for name in ("other.json", "missing.json"):
        assert script("speeds").main([str(tmp_path / name)]) == 2
        assert "is not what speed.py --json or photographs.py --json writes" in capsys.readouterr().err


def test_kernels_that_overlap_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def event(begin: float, lasts: float, kind: str = "kernel") -> dict[str, object]:
        return {"ts": begin, "dur": lasts, "name": "conv", "cat": kind}

    events = [event(0, 10), event(5, 10), event(30, 10, "gpu_memcpy"), event(0, 99, "cpu_op")]
    found = script("kernel_time").summed(events)
    assert found["busy_us"] == 25 and found["wall_us"] == 40 and found["sum_us"] == 30
    assert found["kernels"] == 3 and script("kernel_time").summed([])["kernels"] == 0


def test_counters_add_up_to_the_time_that_each_unit_is_busy() -> None:
    counters = script("counters")
    heads = ["ID", "Kernel Name", counters.TIME, *counters.BYTES.values(), *counters.UNITS.values()]
    units = ["", "", "us", "Mbyte", "Mbyte", "%", "%", "%", "%"]
    rows = [["0", "conv(a, b)", "10", "2", "1,000", "5", "50", "90", "80"]]
    rows.append(["1", "conv(a, b)", "30", "0", "0", "0", "0", "10", "20"])
    text = "==PROF== Connected\n" + "\n".join(
        ",".join(f'"{cell}"' for cell in row) for row in [heads, units, *rows]
    )
    step = counters.summed(counters.parsed(text))["step"]
    assert step["launches"] == 2 and step["us"] == 40 and step["gigabytes"]["L2 cache"] == 1
    assert step["busy_us"] == {
        "memory": 0.5, "L2 cache": 5, "L1 and shared memory": 12, "multiprocessor": 14,
    }  # fmt: skip
    with pytest.raises(counters.Failed, match="saw no kernel"):
        counters.parsed("==ERROR== nothing\n")


def test_a_second_start_is_compared_with_the_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    starts, seconds = script("starts"), iter([20.0, 5.0])
    monkeypatch.setattr(
        starts, "start", lambda argv, env: {"set_up": next(seconds), "process": 30.0, "parts": {}}
    )
    assert starts.both_starts([])["ratio"] == 0.25
    assert "at most 0.33 of the first and 8 s: yes" in capsys.readouterr().out


def test_photographs_are_like_photographs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import io

    from PIL import Image

    photographs = script("photographs")
    files = [photographs.photograph(seed) for seed in range(4)]
    assert 70_000 < sum(map(len, files)) / len(files) < 140_000 and files[0] == photographs.photograph(0)
    assert {Image.open(io.BytesIO(content)).size for content in files} <= {(500, 375), (375, 500)}
    assert photographs.main(["--images", "4", "--device", "cpu"]) == 2
    assert "at least four classes" in capsys.readouterr().err

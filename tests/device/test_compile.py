"""What is compiled is whole and says the same; what torch and Triton keep is in a folder of our own."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from jioc.data.augment.basic import Augment
from jioc.data.augment.choose import choose_augmentation
from jioc.device import compile as compilation


@pytest.mark.parametrize("word", ["standard", "autoaugment", "autoaugment+cutout", "resized-crop"])
def test_an_augmentation_compiles_whole_and_makes_no_constants(word: str) -> None:
    """A tensor made from numbers of Python would be copied to the GPU in every step."""
    augment = choose_augmentation(Augment(pad=4, flip=True, brightness=0.25), word)
    x = torch.randint(0, 256, (16, 3, 32, 32), dtype=torch.uint8)
    draws = augment.draw(16, 32, 32, torch.Generator().manual_seed(0))
    called: set[Any] = set()

    def noted(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> torch.fx.GraphModule:
        called.update(node.target for node in graph.graph.nodes)
        return graph

    compiled = torch.compile(augment.apply, dynamic=False, fullgraph=True, backend=noted)
    assert augment.compiles and torch.equal(compiled(x, *draws), augment.apply(x, *draws))
    assert called and torch.tensor not in called


@pytest.mark.slow
@pytest.mark.parametrize("word", ["standard", "autoaugment+cutout"])
def test_an_augmentation_that_the_compiler_makes_gives_the_same_levels(word: str) -> None:
    augment = choose_augmentation(Augment(pad=4, flip=True, brightness=0.25), word)
    x = torch.randint(0, 256, (128, 3, 28, 28), dtype=torch.uint8)
    draws = augment.draw(128, 28, 28, torch.Generator().manual_seed(0))
    with compilation.compiling(128):
        compiled = compilation.maybe_compiled(augment.apply, 128, exact=True)
    assert compiled is not augment.apply and torch.equal(compiled(x, *draws), augment.apply(x, *draws))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JIOC_CACHE", str(tmp_path))
    for name in compilation.CACHES:
        monkeypatch.setenv(name, "")  # so that it is put back
        monkeypatch.delenv(name)
    return tmp_path / f"compiled-{os.getuid()}"


def test_the_next_process_finds_it_in_our_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", "elsewhere")  # whoever names a folder keeps it
    compilation.keep_compiled()
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(folder / "torch")
    assert os.environ["TRITON_CACHE_DIR"] == "elsewhere"
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("kind", ["open to others", "a link", "a file"])
def test_code_of_others_is_not_run_from_there(kind: str, folder: Path) -> None:
    if kind == "a link":
        (folder.parent / "other").mkdir()
        folder.symlink_to(folder.parent / "other")
    elif kind == "a file":
        folder.touch()
    else:
        folder.mkdir()
        folder.chmod(0o777)
    compilation.keep_compiled()
    assert not {*compilation.CACHES} & {*os.environ}

"""Suggest a method, with settings, for a folder of photographs where nobody names one. No torch here."""

from pathlib import Path

from jioc.config import Values
from jioc.data.catalogue import usual_tasks
from jioc.data.find import find_dataset
from jioc.nets.catalogue import WEIGHTS, package_folder

BEST = "efficientnet-lite0"  # of the weights, for few photographs on a CPU
STEPS = 5  # of an epoch at least, where a network is trained from scratch


def method_for(data: object, trains: bool, several: bool) -> tuple[Values, str] | None:
    """The settings for the images at a place, and a note that says why; None where they are no files.

    `trains`: whether something is asked for that only training has, such as JIOC; `several`: whether tasks
    are. Without, all classes are learnt at once: the images are all here.
    """
    if not isinstance(data, str | Path) or (entry := find_dataset(str(data))).source != "image_files":
        return None
    if entry.place is None:
        return None
    at_once: Values = {} if several else {"tasks": 1}
    together = "" if several else "; all classes in one task (--tasks)"
    if not trains and package_folder(WEIGHTS[BEST].package) is not None:
        return {"method": "ranpac", "weights": BEST} | at_once, (
            f"no method is named: taking ranpac on the frozen features of {BEST}, trained on ImageNet: it "
            f"trains nothing, keeps no exemplars and suits few photographs{together}"
        )
    from jioc.data.images.listing import list_images

    images = len(list_images(entry.place).train) // (usual_tasks(entry.classes) if several else 1)
    batch = max(b for b in (4, 8, 16, 32, 64, 128) if b == 4 or b * STEPS <= images)
    rate = 0.1 * batch / 128
    without = "" if trains else "; pip install 'jioc[pretrained]' brings trained features, which do better"
    return {"method": "icarl", "batch_size": batch, "later": {"lr": rate}} | at_once, (
        f"no method is named: taking icarl from scratch, with --batch-size {batch} and --lr {rate:g} for "
        f"about {images:,} images a task{together}{without}"
    )

"""AutoAugment's operations against PIL, image by image and level by level; its draws; Cutout."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor

from jioc.data.augment import autoaugment as auto
from jioc.data.augment.basic import Augment, cutout, draw_centre
from jioc.data.augment.choose import choose_augmentation
from jioc.data.augment.crops import PaddedCrop, resized

G = torch.Generator().manual_seed(0)
IMAGES = torch.randint(0, 256, (6, 3, 32, 32), generator=G, dtype=torch.uint8)
IMAGES[3] = (IMAGES[3] * 0.2 + torch.linspace(0, 150, 32)).to(torch.uint8)  # of low contrast
IMAGES[4] = 7  # of one level
IMAGES[5] = (IMAGES[5] > 200) * 255  # of two
WIDE = IMAGES[:, :, 3:23].repeat_interleave(2, 3)[..., :33]  # 20 x 33

PIL: dict[str, Callable[[Image.Image, float], Image.Image]] = {
    "colour": lambda image, f: ImageEnhance.Color(image).enhance(f),
    "contrast": lambda image, f: ImageEnhance.Contrast(image).enhance(f),
    "sharpness": lambda image, f: ImageEnhance.Sharpness(image).enhance(f),
    "brightness": lambda image, f: ImageEnhance.Brightness(image).enhance(f),
    "posterize": lambda image, f: ImageOps.posterize(image, int(f)),
    "solarize": lambda image, f: ImageOps.solarize(image, f),  # type: ignore[arg-type]
    "invert": lambda image, f: ImageOps.invert(image),
    "autocontrast": lambda image, f: ImageOps.autocontrast(image),
    "equalize": lambda image, f: ImageOps.equalize(image),
    "shear_x": lambda image, f: affine(image, (1, f, 0, 0, 1, 0)),
    "shear_y": lambda image, f: affine(image, (1, 0, 0, f, 1, 0)),
    "translate_x": lambda image, f: affine(image, (1, 0, f * image.width, 0, 1, 0)),
    "translate_y": lambda image, f: affine(image, (1, 0, 0, 0, 1, f * image.height)),
    "rotate": lambda image, f: image.rotate(f, fillcolor=(auto.GREY,) * 3),
}


def affine(image: Image.Image, matrix: tuple[float, ...]) -> Image.Image:
    grey = (auto.GREY,) * 3
    return image.transform(
        image.size, Image.Transform.AFFINE, matrix, Image.Resampling.NEAREST, fillcolor=grey
    )


def by_pil(name: str, x: Tensor, factor: float) -> Tensor:
    image = Image.fromarray(x.permute(1, 2, 0).numpy())
    return torch.from_numpy(np.array(PIL[name](image, factor))).permute(2, 0, 1)


def drawn(name: str, strength: int, sign: int, x: Tensor) -> auto.Operation:
    n, _, h, w = x.shape
    one = auto.as_numbers(name, strength, sign, h, w)
    return auto.Operation(*(numbers.expand(*numbers.shape[:-1], n) for numbers in one))


@pytest.mark.parametrize("images", [IMAGES, WIDE], ids=["square", "wide"])
@pytest.mark.parametrize("name", PIL)
def test_an_operation_is_pils_to_the_last_level(name: str, images: Tensor) -> None:
    for strength in range(10):
        for sign in (1, -1):
            got = auto.apply(images, drawn(name, strength, sign, images))
            by_hand = [by_pil(name, x, auto.factor_of(name, strength, sign)) for x in images]
            assert torch.equal(got, torch.stack(by_hand)), (strength, sign)


def test_every_operation_is_compared_and_none_changes_nothing() -> None:
    assert sorted([*PIL, "none"]) == sorted(auto.NAMES)
    assert torch.equal(auto.apply(IMAGES, drawn("none", 0, 1, IMAGES)), IMAGES)


def test_the_policy_has_25_sub_policies_of_two() -> None:
    odds, policy = auto.tables(32, 32, torch.device("cpu"))
    assert odds.shape == (2, 25)
    assert [numbers.shape for numbers in policy] == [(*more, 26, 2, 2) for more in ((), (), (6,), (256,))]
    assert odds.min() == 0 and odds.max() == pytest.approx(0.9)


def test_an_image_gets_what_it_drew_whoever_is_beside_it() -> None:
    """With a batch of copies, every outcome is one that some sub-policy gives to a single image."""
    x = IMAGES[:1].expand(200, -1, -1, -1)
    _, policy = auto.tables(32, 32, torch.device("cpu"))
    possible = set()
    for s in range(25):
        for a in (0, 1):
            for b in (0, 1):
                for on in ((0, 0), (0, 1), (1, 0), (1, 1)):
                    y = IMAGES[:1]
                    for i, d in enumerate((a, b)):
                        row = s if on[i] else -1
                        one = (numbers[..., row, i, d][..., None] for numbers in policy)
                        y = auto.apply(y, auto.Operation(*one))
                    possible.add(y.numpy().tobytes())
    drawn = auto.draw(len(x), 32, 32, torch.Generator().manual_seed(0))
    outcomes = {y.numpy().tobytes() for y in auto.augmented(x, drawn)}
    assert outcomes <= possible and len(outcomes) > 30


@pytest.mark.parametrize("word", ["autoaugment", "autoaugment+cutout", "resized-crop"])
def test_every_draw_is_the_generators(word: str) -> None:
    augment = choose_augmentation(Augment(pad=4, flip=True, brightness=0.25), word)
    a, b = (augment(IMAGES, torch.Generator().manual_seed(seed)) for seed in (1, 1))
    assert torch.equal(a, b) and a.dtype == torch.float32
    assert not torch.equal(a, augment(IMAGES, torch.Generator().manual_seed(2)))
    assert ((a >= 0) & (a <= 255) & (a == a.round())).all()


@pytest.mark.parametrize(
    "x", [IMAGES[:, :1, :8, :8], IMAGES[:, :, :2, :2], IMAGES[:0]], ids=["grey", "2x2", "no"]
)
def test_grey_images_small_ones_and_none_are_augmented_too(x: Tensor) -> None:
    assert choose_augmentation(Augment(), "autoaugment")(x, torch.Generator().manual_seed(0)).shape == x.shape


def test_cutout_blacks_out_a_square_around_a_pixel_cut_off_at_the_border() -> None:
    centre = draw_centre(500, 32, 32, torch.Generator().manual_seed(0))
    holes = cutout(torch.ones(500, 1, 32, 32), *centre) == 0
    rows, columns = holes.any(3).sum(2).flatten(), holes.any(2).sum(2).flatten()
    assert torch.equal(holes.sum((1, 2, 3)), rows * columns)  # a rectangle
    assert rows.max() == columns.max() == 16 and rows.min() >= 8 and columns.min() >= 8


def test_none_and_standard_are_what_they_say() -> None:
    usual = Augment(pad=4, flip=True)
    assert choose_augmentation(usual, "standard") is usual
    assert torch.equal(choose_augmentation(usual, "none")(IMAGES, G), IMAGES.float())


def test_cutout_comes_after_autoaugment_and_is_left_out_where_it_is_not_asked_for() -> None:
    usual, h, w = Augment(pad=4, flip=True), *IMAGES.shape[2:]
    plain, with_cutout = (choose_augmentation(usual, word) for word in ("autoaugment", "autoaugment+cutout"))
    draws = with_cutout.draw(len(IMAGES), h, w, torch.Generator().manual_seed(3))
    assert torch.equal(
        with_cutout.apply(IMAGES, *draws), cutout(plain.apply(IMAGES, *draws[:-2]), *draws[-2:])
    )
    assert len(plain.draw(len(IMAGES), h, w, torch.Generator().manual_seed(3))) == len(draws) - 2


def test_a_padded_crop_is_a_resized_part_of_the_image_in_a_black_border() -> None:
    crop = PaddedCrop(flip=False)
    box, mirrored = crop.draw(len(IMAGES), 32, 32, torch.Generator().manual_seed(0))
    assert not mirrored.any() and (box[0] + box[2] <= 40).all() and (box[1] + box[3] <= 40).all()
    bordered = torch.nn.functional.pad(IMAGES.float(), (4,) * 4)
    assert torch.equal(crop.apply(IMAGES, box, mirrored), resized(bordered, box, 32, mirrored).round())
    whole = torch.tensor([4.0, 4.0, 32.0, 32.0])[:, None].expand(
        4, len(IMAGES)
    )  # the image without its border
    assert torch.equal(crop.apply(IMAGES, whole, mirrored), IMAGES.float())

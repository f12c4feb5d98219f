"""Your own data set, from arrays: ripples of six wavelengths. A data file has a function `load`.

jioc run icarl --data examples/own_dataset.py --memory 30 --epochs 10 --coordinate jioc
python examples/own_dataset.py
"""

import numpy as np

import jioc


def load():
    """Training images and their labels, test images and theirs; uint8, (n, h, w) or (n, h, w, channels)."""
    rng = np.random.default_rng(0)
    wavelengths = np.repeat([2.5, 3.0, 3.6, 4.4, 5.4, 6.6], 60)
    centre = rng.uniform(-4, 16, (2, len(wavelengths), 1, 1))
    row, column = np.mgrid[:12, :12]
    distance = np.hypot(row - centre[0], column - centre[1])
    waves = np.sin(2 * np.pi * distance / wavelengths[:, None, None]) + rng.normal(0, 0.5, distance.shape)
    x = np.clip(128 + 60 * waves, 0, 255).astype(np.uint8)
    y = np.array([f"{length} pixels" for length in wavelengths])
    test = np.arange(len(y)) % 4 == 0
    return x[~test], y[~test], x[test], y[test]


if __name__ == "__main__":
    for word in ("none", "jioc"):
        result = jioc.run(method="icarl", data=__file__, memory=30, epochs=10, coordinate=word)
        average, forgetting = result.average["cnn"], result.forgetting["cnn"]
        print(f"{word:4}  average {average:.1f} %  forgetting {forgetting:.1f} %")

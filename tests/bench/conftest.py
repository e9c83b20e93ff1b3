import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

sys.path.insert(0, str(Path(__file__).parent))
from filling import CountingEncoder


@pytest.fixture
def fake():
    return CountingEncoder


@pytest.fixture
def pictures(tmp_path):
    """Write `n` small pictures of noise and return their paths."""

    def write(n, size=(8, 8), seed=0):
        rng = np.random.default_rng(seed)
        folder = tmp_path / "pictures"
        folder.mkdir(exist_ok=True)
        paths = [folder / f"{seed}-{i:04}.png" for i in range(n)]
        for path in paths:
            Image.fromarray(rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)).save(path)
        return paths

    return write


@pytest.fixture
def expected():
    """Compute what CountingEncoder makes of pictures, one by one."""

    def features(paths, size=8):
        rows = [np.asarray(Image.open(path).convert("RGB"), np.float32).transpose(2, 0, 1) for path in paths]
        return np.stack([row.reshape(-1) / np.float32(255) for row in rows])

    return features

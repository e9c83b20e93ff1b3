"""Random projections that a seed alone brings back, on any machine and in any year."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


@lru_cache(maxsize=1)
def signs(wide: int, narrow: int, seed: int) -> NDArray[np.float32]:
    """A matrix (wide, narrow) of ±1/√narrow, which keeps lengths and angles on average (Achlioptas, 2003).

    Drawn from the raw bits of a PCG64 generator, the one stream that NumPy promises not to change.
    """
    words = np.random.PCG64(seed).random_raw(-(-wide * narrow // 64)).astype("<u8")
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")[: wide * narrow]
    return (bits.reshape(wide, narrow).astype(np.float32) * 2 - 1) / np.float32(narrow**0.5)

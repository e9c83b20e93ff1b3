"""What has to happen to a picture before a backbone may see it.

Two steps, split where the work is best done: :meth:`Preprocess.image` is geometry on one picture (a decoding thread's
job, uint8 in and out, so that little memory travels), :meth:`Preprocess.normalise` is arithmetic on a whole batch (the
model's device's job). :meth:`Preprocess.resample` is the same geometry in torch alone, for exported graphs.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from PIL import Image
from torch.nn import functional

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

_FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}


@dataclass(frozen=True)
class Preprocess:
    """Size, resize rule, crop and normalisation, as one value that can be written down.

    Parameters
    ----------
    size : side of the square the model sees, in pixels; None with ``resize="native"`` only.
    resize : ``"shorter"`` scales the shorter side to `resize_to`, then crops the centre size×size square;
        ``"exact"`` stretches to size×size, whatever the aspect ratio; ``"native"`` leaves pictures as they are.
    resize_to : length of the shorter side before the crop, `size` unless given; where larger, a margin is cut off.
    mean, std : per channel (RGB), on the 0..1 scale.
    interpolation : ``"nearest"``, ``"bilinear"``, ``"bicubic"`` or ``"lanczos"``, all antialiased as Pillow does.

    A picture that already has the right size passes through untouched, so 32-pixel CIFAR images meet a 32-pixel model
    with their own pixels.

    >>> spec = Preprocess(size=32)
    >>> spec.image(Image.new("RGB", (64, 48), "red")).shape
    (3, 32, 32)
    >>> spec.normalise(torch.zeros(1, 3, 32, 32, dtype=torch.uint8)).mean().item() < -1.5
    True
    """

    size: int | None = 224
    resize: Literal["shorter", "exact", "native"] = "shorter"
    resize_to: int | None = None
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD
    interpolation: str = "bilinear"

    def __post_init__(self) -> None:
        if self.resize not in ("shorter", "exact", "native"):
            raise ValueError(f"resize is {self.resize!r}; it must be 'shorter', 'exact' or 'native'")
        if (self.size is None) != (self.resize == "native"):
            raise ValueError(
                f"size is {self.size} with resize={self.resize!r}; None goes with 'native', and only there"
            )
        if self.size is not None and self.size < 1:
            raise ValueError(f"size is {self.size}; it must be at least 1 pixel")
        if self.resize_to is not None and (self.resize != "shorter" or self.size is None or self.resize_to < self.size):
            raise ValueError(f"resize_to is {self.resize_to}; it goes with resize='shorter' and must be at least size")
        if self.interpolation not in _FILTERS:
            raise ValueError(f"interpolation is {self.interpolation!r}; it must be one of {', '.join(_FILTERS)}")

    def fits(self, height: int, width: int) -> bool:
        """Say whether a picture of this size needs no geometry at all."""
        if self.resize == "native":
            return True
        return height == width == self.size and self.resize_to in (None, self.size)

    def image(self, picture: Image.Image | np.ndarray) -> np.ndarray:
        """Resize and crop one RGB picture (PIL, or uint8 (H, W, 3)) into uint8 (3, size, size)."""
        if isinstance(picture, np.ndarray):
            if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
                raise ValueError(f"expected a uint8 array (H, W, 3), got {picture.dtype} {picture.shape}")
            if self.fits(picture.shape[0], picture.shape[1]):
                return np.ascontiguousarray(picture.transpose(2, 0, 1))
            picture = Image.fromarray(picture)
        if picture.mode != "RGB":
            raise ValueError(f"expected an RGB picture, got mode {picture.mode!r}; convert it first")
        if self.size is not None and not self.fits(picture.height, picture.width):
            picture = self._resize(picture, self.size)
        return np.ascontiguousarray(np.asarray(picture).transpose(2, 0, 1))

    def _resize(self, picture: Image.Image, size: int) -> Image.Image:
        width, height = picture.size
        if self.resize == "exact":
            return picture.resize((size, size), _FILTERS[self.interpolation])
        short = self.resize_to or size
        # The longer side rounds down and the margin rounds to even, as torchvision's Resize and CenterCrop do.
        scaled_width = short if width <= height else short * width // height
        scaled_height = short if height <= width else short * height // width
        left, top = round((scaled_width - size) / 2), round((scaled_height - size) / 2)
        # Only the part that survives the crop is resampled: same pixels as resizing all of it and cropping, less work.
        x, y = width / scaled_width, height / scaled_height
        box = (left * x, top * y, min((left + size) * x, width), min((top + size) * y, height))
        return picture.resize((size, size), _FILTERS[self.interpolation], box=box)

    @property
    def traceable(self) -> bool:
        """Whether `resample` can do what `image` does."""
        return self.resize != "native" and self.interpolation in ("bilinear", "bicubic")

    def resample(self, batch: torch.Tensor) -> torch.Tensor:
        """Resize and crop a uint8 batch (N, 3, H, W) of one size, as `image` does; torch may trace it for any H and W.

        Pixels differ by 1 or 2 of 255 here and there, as Pillow, torch and ONNX round in their own ways.
        """
        if not self.traceable or self.size is None:
            raise ValueError(f"resize={self.resize!r} with {self.interpolation!r} cannot be traced")
        size, height, width = self.size, batch.shape[2], batch.shape[3]
        if self.resize == "exact":
            return functional.interpolate(batch, (size, size), mode=self.interpolation, antialias=True)
        short = self.resize_to or size
        # Written without a question, so that one graph does for all sizes: for the shorter side it is `short` itself.
        tall, wide = torch.sym_max(short, short * height // width), torch.sym_max(short, short * width // height)
        scaled = functional.interpolate(batch, (tall, wide), mode=self.interpolation, antialias=True)
        down, right = torch.arange(size) + _margin(tall - size), torch.arange(size) + _margin(wide - size)
        return scaled.index_select(2, down).index_select(3, right)

    def normalise(self, batch: torch.Tensor) -> torch.Tensor:
        """Turn a uint8 batch (N, 3, H, W) into the float32 one the model takes, on the device the batch is on."""
        if batch.dtype != torch.uint8 or batch.ndim != 4 or batch.shape[1] != 3:
            raise ValueError(f"expected a uint8 batch (N, 3, H, W), got {batch.dtype} {tuple(batch.shape)}")
        mean = torch.tensor(self.mean, device=batch.device).view(3, 1, 1)
        std = torch.tensor(self.std, device=batch.device).view(3, 1, 1)
        return batch.to(torch.float32).div_(255).sub_(mean).div_(std)

    def describe(self) -> dict[str, Any]:
        """Return the spec as plain JSON-able values."""
        return {**asdict(self), "mean": list(self.mean), "std": list(self.std)}

    def key(self) -> str:
        """Return one stable line of text, equal exactly when the specs are equal: for cache keys and model files."""
        return json.dumps(self.describe(), sort_keys=True, separators=(",", ":"))


def _margin(spare: int) -> int:
    """round(spare / 2), halves to the even number, in integers alone."""
    return spare // 2 + spare % 4 // 3

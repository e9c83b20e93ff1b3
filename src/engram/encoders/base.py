"""What an encoder is, and how a picture becomes what it takes."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint8]
Features = NDArray[np.float32]

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


class EncoderError(ValueError):
    """An encoder that cannot be made or used as asked; the message says why and what to do."""


@dataclass(frozen=True)
class Preprocess:
    """Size, resize rule and crop of a picture, and the normalisation that the network does itself.

    Parameters
    ----------
    size : side of the square the network sees, in pixels.
    resize : ``"shorter"`` scales the shorter side to `resize_to`, then crops the centre size×size square;
        ``"exact"`` stretches to size×size, whatever the aspect ratio.
    resize_to : length of the shorter side before the crop, `size` unless given; where larger, a margin is cut off.
    mean, std : per channel (RGB), on the 0..1 scale.
    draft : whether a JPEG is decoded at a half, a quarter or an eighth of its sides where twice what the network sees
        is left of them: a photo of 12 megapixels in a third of the time, and nearly the same pixels.
    interpolation : ``"nearest"``, ``"bilinear"``, ``"bicubic"`` or ``"lanczos"``, all antialiased as Pillow does.

    A picture that already has the right size passes through untouched.

    >>> Preprocess(size=32).image(Image.new("RGB", (64, 48), "red")).shape
    (32, 32, 3)
    """

    size: int = 224
    resize: Literal["shorter", "exact"] = "shorter"
    resize_to: int | None = None
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD
    interpolation: str = "bilinear"
    draft: bool = False

    def __post_init__(self) -> None:
        if self.resize not in ("shorter", "exact"):
            raise ValueError(f"resize is {self.resize!r}; it must be 'shorter' or 'exact'")
        if self.size < 1:
            raise ValueError(f"size is {self.size}; it must be at least 1 pixel")
        if self.resize_to is not None and (self.resize != "shorter" or self.resize_to < self.size):
            raise ValueError(f"resize_to is {self.resize_to}; it goes with resize='shorter' and must be at least size")
        if self.interpolation not in ("nearest", "bilinear", "bicubic", "lanczos"):
            raise ValueError(f"interpolation is {self.interpolation!r}, which Pillow does not know")

    def fits(self, height: int, width: int) -> bool:
        """Whether a picture of this size needs no resizing."""
        return height == width == self.size and self.resize_to in (None, self.size)

    @property
    def enough(self) -> int | None:
        """How long the sides of a picture have to be, at least, when it is decoded; None: as long as they are."""
        return 2 * (self.resize_to or self.size) if self.draft else None

    def image(self, picture: Image.Image) -> Pixels:
        """Resize and crop an RGB picture into uint8 (size, size, 3)."""
        return np.asarray(picture if self.fits(picture.height, picture.width) else self._resized(picture))

    def _resized(self, picture: Image.Image) -> Image.Image:
        size, (width, height), how = self.size, picture.size, Image.Resampling[self.interpolation.upper()]
        if self.resize == "exact":
            return picture.resize((size, size), how)
        short = self.resize_to or size
        # The longer side rounds down and the margin rounds to even, as torchvision's Resize and CenterCrop do.
        scaled_width = short if width <= height else short * width // height
        scaled_height = short if height <= width else short * height // width
        left, top = round((scaled_width - size) / 2), round((scaled_height - size) / 2)
        # Only the part that survives the crop is resampled: same pixels as resizing all of it and cropping, less work.
        x, y = width / scaled_width, height / scaled_height
        box = (left * x, top * y, min((left + size) * x, width), min((top + size) * y, height))
        return picture.resize((size, size), how, box=box)

    def describe(self) -> dict[str, Any]:
        """The settings as plain JSON-able values."""
        described = {**asdict(self), "mean": list(self.mean), "std": list(self.std)}
        return {name: value for name, value in described.items() if name != "draft" or value}  # as before there was it

    def key(self) -> str:
        """One line of text, equal exactly when the settings are equal: for cache keys and model files."""
        return json.dumps(self.describe(), sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class Identity:
    """Which encoder exactly: what a model file records.

    Attributes
    ----------
    text : network, layer, input size, a hash of the weights in use, and whether mirrored pictures are averaged in. Two
        encoders with the same text give the same features.
    name : what makes it again; None where a name is not enough.
    """

    text: str
    name: str | None = field(default=None, compare=False)


class Encoder(Protocol):
    """A frozen network: pictures in, feature vectors out. Threads may share it; it is never pickled."""

    @property
    def identity(self) -> Identity:
        """Which one it is."""

    @property
    def dim(self) -> int:
        """Length of a feature vector."""

    @property
    def preprocess(self) -> Preprocess:
        """How a picture becomes what it takes."""

    @property
    def batch(self) -> int:
        """How many pictures a thread had best give it at a time."""

    def encode(self, pictures: Pixels) -> Features:
        """Features (n, dim) of uint8 pictures (n, size, size, 3)."""

"""A part of a picture, where a detector has found something."""

from dataclasses import dataclass
from pathlib import Path

from PIL import Image

Box = tuple[float, float, float, float]  # left, top, width and height, as shares of the upright picture's


@dataclass(frozen=True)
class Crop:
    """A box in a picture: used in place of the picture, the network sees the square around the box.

    >>> Crop(Path("garden.jpg"), (0.5, 0.0, 0.25, 0.75)).cut(Image.new("RGB", (80, 40))).size
    (30, 30)
    """

    path: Path
    box: Box

    @property
    def filename(self) -> str:
        """The picture it is a part of, for messages."""
        return str(self.path)

    @property
    def name(self) -> str:
        """The picture's."""
        return self.path.name

    def cut(self, picture: Image.Image) -> Image.Image:
        """The square around the box, moved where it would stand out of the upright picture, and never larger than that.

        A network sees the middle square of what it is given: of a bird that is longer than high, not head and tail.
        """
        left, top, width, height = self.box
        side = max(1, round(max(width * picture.width, height * picture.height)))
        x0, x1 = _inside(left + width / 2, side, picture.width)
        y0, y1 = _inside(top + height / 2, side, picture.height)
        return picture.crop((x0, y0, x1, y1))


def _inside(middle: float, side: int, pixels: int) -> tuple[int, int]:
    side = min(side, pixels)
    first = min(max(0, round(middle * pixels - side / 2)), pixels - side)
    return first, first + side

"""Boxes that a detector has found: MegaDetector's JSON, format 1.x (https://lila.science/megadetector-output-format)."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from engram.errors import DataError

ANIMAL = "animal"
USUAL = 0.2  # what MegaDetector recommends from version 5 on, for a file that does not say


class Found(NamedTuple):
    """A box: left, top, width and height as shares of the upright picture, and its positions in the file's lists."""

    path: Path
    box: tuple[float, float, float, float]
    confidence: float
    image: int
    detection: int


@dataclass(frozen=True)
class Detections:
    """A file of detections: all of it, as it was read, and the boxes to look at, in its order.

    Those are boxes of animals that reach `threshold`, or of anything where no category is called so. `videos` are
    files whose boxes lie in single frames; they are passed over.
    """

    content: dict[str, Any]
    threshold: float
    boxes: list[Found]
    videos: list[str]

    def surest(self) -> dict[Path, Found]:
        """The surest box of each picture."""
        best: dict[Path, Found] = {}
        for found in self.boxes:
            best[found.path] = max(best.get(found.path, found), found, key=lambda one: one.confidence)
        return best


def read_detections(
    file: str | Path, *, images: str | Path | None = None, threshold: float | None = None
) -> Detections:
    """Read MegaDetector's JSON. File names in it are relative to `images` or, without, to its own folder.

    `threshold` is the confidence a box has to reach: without, the one that the file calls typical, or 0.2. DataError
    says in one line what does not follow the format.
    """
    file = Path(file).expanduser()
    folder = file.parent if images is None else Path(images).expanduser()
    try:
        content = json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or f"it is no JSON ({error})"
        raise DataError(f"cannot read {file}: {reason}") from error
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder")
    try:
        _check_frame(content)
        threshold = _typical(content["info"]) if threshold is None else threshold
        if not 0 <= threshold <= 1:
            raise DataError(f"a threshold of detections lies between 0 and 1, and {threshold:g} does not")
        found = list(_boxes(content, folder))
    except _NotTheFormatError as error:
        raise DataError(f"{file} is not MegaDetector's JSON, format 1.x: {error}") from None
    kinds = content["detection_categories"]
    wanted = {key for key, name in kinds.items() if name.strip().casefold() == ANIMAL} or set(kinds)
    sure = [one for category, one in found if category in wanted and one.confidence >= threshold]
    return Detections(content, threshold, sure, [one["file"] for one in content["images"] if "frame_rate" in one])


class _NotTheFormatError(ValueError):
    pass


def _require(condition: object, fault: str) -> None:
    if not condition:
        raise _NotTheFormatError(fault)


def _check_frame(content: Any) -> None:
    _require(isinstance(content, dict), "it is no object with info, detection_categories and images")
    info, kinds = content.get("info"), content.get("detection_categories")
    _require(isinstance(info, dict) and "format_version" in info, "info.format_version is missing")
    version = str(info["format_version"])
    _require(version.split(".")[0] == "1", f"info.format_version is {version}")
    named = isinstance(kinds, dict) and all(isinstance(name, str) for name in kinds.values())
    _require(named, "detection_categories has to map numbers to names")
    _require(isinstance(content.get("images"), list), "images has to be a list")


def _typical(info: dict[str, Any]) -> float:
    metadata = info.get("detector_metadata")
    typical: Any = metadata.get("typical_detection_threshold") if isinstance(metadata, dict) else None
    return float(typical) if _is_number(typical) and 0 <= typical <= 1 else USUAL


def _boxes(content: dict[str, Any], folder: Path) -> Iterator[tuple[str, Found]]:
    """Every box in a picture, and its category."""
    for i, image in enumerate(content["images"]):
        here = f"images[{i}]"
        _require(isinstance(image, dict) and isinstance(image.get("file"), str), f"{here} has no file")
        detections = image.get("detections")
        if image.get("failure") is None:
            _require(isinstance(detections, list), f"{here}.detections is no list, though nothing failed")
        for j, one in enumerate(detections or ()):
            at = f"{here}.detections[{j}]"
            _require(isinstance(one, dict) and isinstance(one.get("category"), str), f"{at} has no category")
            _require(_is_number(one.get("conf")), f"{at}.conf is no number")
            box: Any = one.get("bbox")
            four = isinstance(box, list) and len(box) == 4 and all(map(_is_number, box))
            _require(four and min(box) > -0.01 and max(box) < 1.01, f"{at}.bbox is not four numbers between 0 and 1")
            if "frame_rate" not in image:
                # Windows writes names with \, and may have been where the detector ran.
                path = folder / image["file"].replace("\\", "/")
                left, top, width, height = map(float, box)
                yield one["category"], Found(path, (left, top, width, height), float(one["conf"]), i, j)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)

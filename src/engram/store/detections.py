"""What a detector found: its boxes as pictures to learn from and to answer, and the answers in its own file."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from engram.datasets.detections import Detections
from engram.datasets.folders import LeftOut
from engram.errors import DataError
from engram.files.atomic import replacing
from engram.images.crop import Crop
from engram.images.stream import Unreadable
from engram.names import UNKNOWN
from engram.store.image_bytes import Source
from engram.store.predict import Answer
from engram.store.taxonomy import ancestors


def crops(found: Detections) -> list[Crop]:
    """The boxes to answer, in the file's order; DataError if none of their pictures is there."""
    paths = dict.fromkeys(one.path for one in found.boxes)
    if paths and not any(path.exists() for path in paths):
        raise DataError(f"no picture is where the detections say, such as {next(iter(paths))}; give --images FOLDER")
    return [Crop(one.path, one.box) for one in found.boxes]


def crop_classes(
    classes: Mapping[str, Sequence[Source]], found: Detections
) -> tuple[dict[str, list[Source]], list[LeftOut]]:
    """The surest box of each picture in the picture's place, and the pictures that have none.

    One box, so that a sample stays a picture; a second box is more often a mistake of the detector than the first.
    """
    best = {os.path.realpath(path): one for path, one in found.surest().items()}
    cropped: dict[str, list[Source]] = {}
    left_out: list[LeftOut] = []
    for name, images in classes.items():
        cropped[name] = []
        for image in images:
            if not isinstance(image, Path):
                raise DataError("detections are of files, and these are other pictures")
            if one := best.get(os.path.realpath(image)):
                cropped[name].append(Crop(image, one.box))
            else:
                left_out.append(LeftOut(image, f"the detections have no box in it that reaches {found.threshold:g}"))
    if left_out and not any(cropped.values()):
        raise DataError(
            f"the detections have no box in any of these {len(left_out)} pictures; "
            "--images says which folder their names are relative to"
        )
    return cropped, left_out


def add_classifications(
    found: Detections,
    answers: Iterable[Answer | Unreadable],
    *,
    classifier: str,
    names: Sequence[str],
    taxonomy: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The file's content with the answers to its `crops` added, as the format has it; all else stays as it was.

    `names` are the classes that may be answers. Where the answer is "unknown", or the picture cannot be read, a box has
    no classification. What an earlier classifier wrote is replaced, as a file has one.
    """
    above = dict.fromkeys(name for one in names for name in ancestors(one, taxonomy or {}))
    number = {name: str(i) for i, name in enumerate(dict.fromkeys([*names, *above]))}
    given: dict[tuple[int, int], list[list[Any]]] = {}
    for answer in answers:
        if isinstance(answer, Answer) and answer.label != UNKNOWN:
            ranked = [[number[one.label], one.probability] for one in answer.top]
            if answer.label != answer.top[0].label:  # a coarser name, likelier than any class
                ranked.insert(0, [number[answer.label], answer.label_probability])
            at = found.boxes[answer.position]
            given[at.image, at.detection] = ranked

    def classified(i: int, image: dict[str, Any]) -> dict[str, Any]:
        if not image.get("detections"):
            return image
        boxes = [
            {name: value for name, value in one.items() if name != "classifications"}
            | ({"classifications": given[i, j]} if (i, j) in given else {})
            for j, one in enumerate(image["detections"])
        ]
        return {**image, "detections": boxes}

    content = {name: value for name, value in found.content.items() if name != "classification_category_descriptions"}
    info = {name: value for name, value in content["info"].items() if name != "classifier_metadata"}
    if taxonomy is not None:
        lines = {key: ";".join([*reversed(ancestors(name, taxonomy)), name]) for name, key in number.items()}
        content["classification_category_descriptions"] = lines
    return content | {
        "info": info | {"classifier": classifier, "classification_completion_time": _local_time()},
        "classification_categories": {key: name for name, key in number.items()},
        "images": [classified(i, image) for i, image in enumerate(content["images"])],
    }


def write_detections(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Write such a file, whole or not at all; it may take the place of the one that was read."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _local_time() -> str:
    return datetime.now().strftime("%Y-%m-%d %H:%M:%S")  # as MegaDetector writes it

"""Where pictures come from: folders, lists and detectors, and what is left out of them."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from engram.cli.app import complain, note

if TYPE_CHECKING:
    from engram.datasets.detections import Detections
    from engram.datasets.folders import LeftOut
    from engram.store import ImageUrl

_NAMED = 10  # files that are left out for one reason


def listed_pictures(file: Path, *, skip_bad: bool, addresses: bool = False) -> "dict[str, list[Path | ImageUrl]]":
    """The pictures of each class in a list; every bad row is told, and is an error unless `skip_bad`."""
    from engram.datasets.listing import read_listing
    from engram.errors import DataError

    listing = read_listing(file, addresses=addresses)
    for row in listing.bad:
        complain(f"{file}, {row}")
    if listing.bad and not skip_bad:
        rows = "1 row" if len(listing.bad) == 1 else f"{len(listing.bad)} rows"
        raise DataError(f"{rows} of {file} cannot be used; correct the list, or go on without with --skip-bad")
    if not listing.classes:
        raise DataError(f"no row of {file} can be used")
    from engram.store import ImageUrl

    return {
        name: [ImageUrl(one) if "://" in one else Path(one) for one in sources]
        for name, sources in listing.classes.items()
    }


def detected_boxes(file: Path | None, images: Path | None, threshold: float | None) -> "Detections | None":
    """What --detections names, and what the options beside it say about it."""
    if file is None:
        if images is not None or threshold is not None:
            raise ValueError("--images and --detection-threshold belong to --detections")
        return None
    from engram.datasets.detections import read_detections
    from engram.datasets.folders import LeftOut

    found = read_detections(file, images=images, threshold=threshold)
    tell_left_out(LeftOut(Path(name), "a video, and boxes in its frames are passed over") for name in found.videos)
    return found


def tell_left_out(left_out: "Iterable[LeftOut]") -> None:
    """Name what lies among pictures and is not taken for one; of many with one reason, some."""
    by_reason: dict[str, list[Path]] = {}
    for path, reason in left_out:
        by_reason.setdefault(reason, []).append(path)
    for reason, paths in by_reason.items():
        for path in paths[:_NAMED]:
            note(f"left out {path}: {reason}")
        if len(paths) > _NAMED:
            note(f"left out {len(paths) - _NAMED:,} more: {reason}")

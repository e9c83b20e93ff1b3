"""Pictures and their classes from a list in a file, for learn and evaluate."""

from pathlib import Path
from typing import TYPE_CHECKING

from engram.cli.app import complain

if TYPE_CHECKING:
    from engram.store import ImageUrl


def listed_pictures(file: Path, *, skip_bad: bool, addresses: bool = False) -> "dict[str, list[Path | ImageUrl]]":
    """The pictures of each class in a list; every bad row is told, and is an error unless `skip_bad`."""
    from engram.datasets import DataError, read_listing

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

"""Pictures by a list in a file: a CSV with the class of each, or one path or address a line."""

import csv
from pathlib import Path, PurePosixPath

from engram.datasets.dataset import DataError


def read_listing(file: str | Path) -> dict[str, list[str]]:
    """The pictures of each class that a list names, classes in alphabetical order.

    FILE.csv has the columns path and label, named in its first line; in any other file every line is a path or an
    address such as s3://…, and the folder that a picture lies in is its class. Paths are relative to the list.
    """
    file = Path(file).expanduser()
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {file}: {getattr(error, 'strerror', None) or 'it is not text'}") from error
    rows = _rows(file, lines) if file.suffix.lower() == ".csv" else [(line.strip(), "") for line in lines]
    found: dict[str, list[str]] = {}
    for path, label in rows:
        if path:
            label = label or PurePosixPath(path.replace("\\\\", "/")).parent.name
            if not label:
                raise DataError(f"{file} has {path}, which lies in no folder, so it has no class")
            found.setdefault(label, []).append(path if "://" in path else str(file.resolve().parent / path))
    if not found:
        raise DataError(f"{file} names no pictures")
    return dict(sorted(found.items()))


def _rows(file: Path, lines: list[str]) -> list[tuple[str, str]]:
    reader = csv.DictReader(lines)
    if not {"path", "label"} <= set(reader.fieldnames or ()):
        raise DataError(f"{file} needs the columns path and label, named in its first line")
    rows = [(row["path"] or "", row["label"] or "") for row in reader]
    if missing := [path for path, label in rows if not label]:
        raise DataError(f"{file} has no label for {missing[0]}")
    return rows

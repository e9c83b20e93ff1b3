"""Pictures by a list in a file: a table with the class of each, or one path or address a line."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from engram.errors import DataError

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_HEADER = ("path", "label")


@dataclass(frozen=True)
class Listing:
    """The pictures of each class that a list names, classes in alphabetical order; and the rows that are no use.

    `bad` has each of them with its line, and why, in words.
    """

    classes: dict[str, list[str]]
    bad: list[str]


@dataclass(frozen=True)
class _Row:
    where: str  # "line 3"
    path: str
    label: str


def read_listing(file: str | Path, *, addresses: bool = True) -> Listing:
    """Read a list of pictures and their classes. Paths are relative to the list.

    A CSV or TSV file has the columns path and label; if the first line names them they may stand in any order and
    beside others, else there are just these two. In any other file every line is a path or, where `addresses` may be
    read, an address such as s3://…, and the folder that a picture lies in is its class.
    """
    file = Path(file).expanduser()
    classes: dict[str, dict[str, None]] = {}
    bad: list[str] = []
    first: dict[str, _Row] = {}
    for row in _rows(file):
        path = row.path if "://" in row.path else str(file.resolve().parent / row.path)
        if reason := _fault(row, path, addresses):
            bad.append(f"{row.where}: {reason}")
        elif (before := first.setdefault(path, row)).label != row.label:
            bad.append(f"{row.where}: {row.path} is {row.label} here, but {before.label} on {before.where}")
        else:
            classes.setdefault(row.label, {})[path] = None
    if not (classes or bad):
        raise DataError(f"{file} names no pictures")
    return Listing({label: list(paths) for label, paths in sorted(classes.items())}, bad)


def _fault(row: _Row, path: str, addresses: bool) -> str | None:
    """Why a row is no use; None if it is."""
    if not row.path:
        return "it has no path"
    if not row.label:
        return f"{row.path} has no label"
    if "://" in path:
        return None if addresses else f"{path} is an address, which only --dask reads"
    try:
        with open(path, "rb"):
            return None
    except OSError as error:
        return f"cannot read {row.path}: {error.strerror}"


def _rows(file: Path) -> Iterable[_Row]:
    kind = file.suffix.lower()
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {file}: {getattr(error, 'strerror', None) or 'it is not text'}") from error
    if kind in _DELIMITERS:
        return _table(file, text, _DELIMITERS[kind])
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    return [_Row(f"line {number}", line, _folder(line)) for number, line in lines if line]


def _folder(path: str) -> str:
    return PurePosixPath(path.replace("\\", "/")).parent.name


def _table(file: Path, text: str, delimiter: str) -> list[_Row]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        cells = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(map(str.strip, row))]
    except csv.Error as error:
        raise DataError(f"{file}, line {reader.line_num}, is no table: {error}") from error
    columns = _columns(cells[0][1]) if cells else None
    if columns is not None:
        del cells[0]
    elif any(len(row) > len(_HEADER) for _, row in cells):
        raise DataError(f"{file} needs the columns path and label, named in its first line, or these two alone")
    path, label = columns or (0, 1)
    return [_Row(f"line {number}", _cell(row, path), _cell(row, label)) for number, row in cells]


def _columns(first: Sequence[str]) -> tuple[int, int] | None:
    """Where path and label stand, if the first line names them."""
    names = [name.casefold() for name in first]
    return (names.index("path"), names.index("label")) if set(_HEADER) <= set(names) else None


def _cell(row: Sequence[str], column: int) -> str:
    return row[column] if column < len(row) else ""

"""A results file on disk: numbers as JSON, one list for each column; confusions and predictions compressed beside it.

What has been read is as the runner made it, so that nobody else has to know. Format 1, which older files have, is one
object for each task with the confusion matrix inside.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from engram.bench.torchrun import is_first
from engram.files.atomic import replacing

Json = dict[str, Any]
FORMAT = 2
_BESIDE = ("confusion", "predictions")  # in files of their own
# A class order's own, however the network was initialised: written with its first initialisation alone.
_OF_ORDER = ("kept_bytes", "peak_memory_bytes")


def write_results(path: Path, results: Json) -> None:
    """Write `path` and, where there are any, `confusion_file(path)` and `predictions_file(path)`.

    A confusion matrix is of the first class order, its rows and columns in the order of learning. Predictions are of
    every test sample after the last class, a row for every course, as positions in the sorted list of classes.
    """
    records = [{k: v for k, v in record.items() if k not in _BESIDE} for record in results["records"]]
    shared = {str(order["seed"]): order["classes"] for record in records for order in record["orders"]}
    packed = [record | {"orders": _pack_orders(record["orders"], shared)} for record in records]
    matrices: Json = {
        str(number): np.asarray(record["confusion"]["counts"], dtype=np.int32)
        for number, record in enumerate(results["records"])
        if record.get("confusion")
    }
    _write_arrays(confusion_file(path), matrices)
    _write_arrays(predictions_file(path), _pack_predictions(results["records"]))
    write_json(path, results | {"format": FORMAT, "class_orders": shared, "records": packed})


def read_results(path: Path) -> Any:
    """What was written, as it was before; whatever is not of format 2 is given as it is, for a reader to judge."""
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        return content
    try:
        shared = content.pop("class_orders")
        records = [record | {"orders": _unpack_orders(record["orders"], shared)} for record in content["records"]]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is not a results file of `engram bench`: its columns are damaged ({error})") from None
    if confusion_file(path).exists():
        with np.load(confusion_file(path), allow_pickle=False) as matrices:
            for number, record in enumerate(records):
                if str(number) in matrices:
                    labels = record["orders"][0]["classes"]
                    record["confusion"] = {"labels": labels, "counts": matrices[str(number)].tolist()}
    if predictions_file(path).exists():
        with np.load(predictions_file(path), allow_pickle=False) as arrays:
            shared = {name: arrays[name].tolist() for name in ("labels", "truth")}
            for number, record in enumerate(records):
                if str(number) in arrays:
                    record["predictions"] = shared | {"courses": arrays[str(number)].tolist()}
    return content | {"format": 1, "records": records}


def confusion_file(path: Path) -> Path:
    """Where the confusion matrices of a results file are."""
    return path.with_suffix(".confusion.npz")


def predictions_file(path: Path) -> Path:
    """Where the predictions of a results file are: the classes, the truth, and those of each record by its number."""
    return path.with_suffix(".predictions.npz")


def _pack_predictions(records: list[Json]) -> Json:
    """All records are of the same test samples; a position takes one byte where there are up to 256 classes."""
    found = {str(number): record["predictions"] for number, record in enumerate(records) if "predictions" in record}
    if not found:
        return {}
    first = next(iter(found.values()))
    kind = np.min_scalar_type(len(first["labels"]) - 1)
    arrays = {"truth": first["truth"]} | {number: predictions["courses"] for number, predictions in found.items()}
    return {"labels": np.asarray(first["labels"])} | {name: np.asarray(of, kind) for name, of in arrays.items()}


def _write_arrays(path: Path, arrays: Json) -> None:
    if arrays and is_first():
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary, Path(temporary).open("wb") as file:
            np.savez_compressed(file, **arrays)


def _pack_orders(orders: list[Json], shared: Json) -> list[Json]:
    packed, seen = [], set()
    for order in orders:
        columns = _columns(order["tasks"])
        if order["seed"] in seen:
            columns = {name: column for name, column in columns.items() if name not in _OF_ORDER}
        kept = {k: v for k, v in order.items() if k != "classes" or v != shared[str(order["seed"])]}
        packed.append(kept | {"tasks": columns})
        seen.add(order["seed"])
    return packed


def _columns(tasks: list[Json]) -> Json:
    """Of a list of objects one object of lists, the same again for objects inside; what one of them lacks is 0."""
    names = dict.fromkeys(name for task in tasks for name in task)
    columns = {name: [task.get(name, 0) for task in tasks] for name in names}
    return {n: _columns(column) if isinstance(column[0], dict) else column for n, column in columns.items()}


def _unpack_orders(orders: list[Json], shared: Json) -> list[Json]:
    first: dict[int, Json] = {}
    unpacked = []
    for order in orders:
        of_order = first.setdefault(order["seed"], order)["tasks"]
        columns = {name: of_order[name] for name in _OF_ORDER if name in of_order} | order["tasks"]
        unpacked.append({"classes": shared[str(order["seed"])]} | order | {"tasks": _rows(columns)})
    return unpacked


def _rows(columns: Json) -> list[Json]:
    """The inverse of `_columns`."""
    lists = {name: _rows(column) if isinstance(column, dict) else column for name, column in columns.items()}
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


def write_json(path: Path, content: Any) -> None:
    """Atomically: a reader, or a resumed run, sees the old file or the new. The first of several processes writes."""
    if not is_first():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        Path(temporary).write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")

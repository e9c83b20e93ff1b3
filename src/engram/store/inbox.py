"""Pictures as they come: answer every new file in a folder, once, however often one stops and starts again."""

import csv
import io
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from engram.backbones import Backbone
from engram.datasets import DataError, scan_pictures
from engram.images import Unreadable
from engram.store.model_store import ModelStore
from engram.store.predict import Answer, predict_images, unknown_threshold

_COLUMNS = ("path", "size", "modified", "label", "similarity", "probability", "familiarity", "reason")


class Seen(NamedTuple):
    """A file as it was: its path in the folder, its size, and when it was changed, in nanoseconds."""

    path: str
    size: int
    modified: int


class AnswerLog:
    """Answers in a file, a line each: JSON if it ends in .jsonl, else CSV. `answered` has the label of each so far.

    A line is there before anything else is done to its picture. One that was cut off when a process was killed is
    removed, so that its picture is answered again.
    """

    def __init__(self, path: Path) -> None:
        self._json = path.suffix.lower() == ".jsonl"
        content = path.read_bytes() if path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        try:
            self.answered = {
                Seen(row["path"], int(row["size"]), int(row["modified"])): str(row["label"])
                for row in self._rows(whole.decode(errors="surrogateescape"))
            }
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(f"{path} holds something else than answers of engram watch; name another file") from error
        self._file = path.open("a", encoding="utf-8", errors="surrogateescape", newline="")
        self._file.truncate(len(whole))
        if not (whole or self._json):
            self._append(",".join(_COLUMNS) + "\n")

    def _rows(self, text: str) -> Iterator[dict[str, Any]]:
        if self._json:
            return map(json.loads, text.splitlines())
        return iter(csv.DictReader(io.StringIO(text, newline="")))

    def add(self, seen: Seen, answer: Answer | Unreadable) -> None:
        """Write an answer down; one that could not be read has no label but a reason."""
        told = vars(answer) if isinstance(answer, Answer) else {"label": "", "reason": answer.reason}
        row = {name: told.get(name, "") for name in _COLUMNS} | seen._asdict()
        if self._json:
            self._append(json.dumps(row) + "\n")
        else:
            line = io.StringIO()
            csv.DictWriter(line, _COLUMNS, lineterminator="\n").writerow(row)
            self._append(line.getvalue())
        self.answered[seen] = row["label"]

    def _append(self, line: str) -> None:
        self._file.write(line)
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def watch_inbox(
    store: ModelStore,
    inbox: Path,
    log: AnswerLog,
    *,
    unknown: str | None = None,
    move: Path | None = None,
    every: float = 2.0,
) -> Iterator[Answer | Unreadable]:
    """Keep answering the pictures that appear in a folder, and yield each answer once it is in the log.

    A picture is answered when its file has not changed from one look to the next, and again if it changes later. With
    `move`, it then goes to a folder there that is called like the answer. When the model's file changes, it is read
    again.
    """
    if not inbox.is_dir():
        raise DataError(f"{inbox} is not a folder")
    if move is not None and move.resolve().is_relative_to(inbox.resolve()):
        raise ValueError(f"{move} lies in {inbox}: what is moved there would be found again; name a folder elsewhere")
    before: dict[Path, Seen] = {}
    backbone: Backbone | None = None
    while True:
        present = _look(inbox)
        settled = {path: seen for path, seen in present.items() if before.get(path) == seen}
        new = [path for path, seen in settled.items() if seen not in log.answered]
        if new:
            model = store.read(backbone)
            backbone, below = model.backbone, unknown_threshold(model, unknown)
            for answer in predict_images(model, new, top=1, unknown=below, device=store.device):
                path = new[answer.position]
                log.add(settled[path], answer)
                _move(path, log.answered[settled.pop(path)], move)
                yield answer
        for path, seen in settled.items():  # answered by a process that was stopped before it could move them
            _move(path, log.answered[seen], move)
        before = present
        time.sleep(every)


def _look(inbox: Path) -> dict[Path, Seen]:
    found = {}
    for path in scan_pictures(inbox)[0]:
        try:
            state = path.stat()
        except OSError:  # gone already
            continue
        found[path] = Seen(path.relative_to(inbox).as_posix(), state.st_size, state.st_mtime_ns)
    return found


def _move(path: Path, label: str, root: Path | None) -> None:
    """Put an answered picture into the folder of its answer, under a name that is free there."""
    if root is None or not label:
        return
    folder = root / (label.replace("/", "_").replace("\\", "_").lstrip(".") or "_")
    folder.mkdir(parents=True, exist_ok=True)
    target, number = folder / path.name, 2
    while target.exists():
        target, number = folder / f"{path.stem} ({number}){path.suffix}", number + 1
    shutil.move(path, target)

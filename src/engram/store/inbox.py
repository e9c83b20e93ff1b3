"""Pictures as they come: answer every new file in a folder, once, however often one stops and starts again.

Films among them are answered a frame every so many seconds, and go on where they were left. A stream never ends.
"""

import csv
import io
import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from engram.datasets.folders import is_film, scan_pictures
from engram.errors import DataError
from engram.images.film import can_see_films
from engram.images.stream import Unreadable
from engram.model import Model
from engram.names import SURE
from engram.store.film import predict_film
from engram.store.model_store import ModelStore
from engram.store.predict import Answer, predict_images, unknown_threshold

_COLUMNS = (
    "path", "size", "modified", "seconds", "label", "similarity", "probability", "familiarity", "label_probability",
    "reason",
)  # fmt: skip


class Seen(NamedTuple):
    """A file as it was: its path in the folder, its size, and when it was changed, in nanoseconds."""

    path: str
    size: int
    modified: int


@dataclass(frozen=True)
class Wanted:
    """What answers are to be like; see `predict_images`. `unknown` is as the option --unknown has it."""

    unknown: str | None = None
    among: Sequence[str] | None = None
    taxonomy: Mapping[str, str] | None = None
    sure: float = SURE

    def options(self, model: Model) -> dict[str, Any]:
        """The options for a model, which may have learned since: those it is to choose among that it knows."""
        chosen = None if self.among is None else [name for name in self.among if name in set(model.names)]
        if chosen is not None and not chosen:
            raise ValueError(f"the model knows none of {', '.join(self.among or ())}")
        below = unknown_threshold(model, self.unknown)
        return {"top": 1, "unknown": below, "among": chosen, "taxonomy": self.taxonomy, "sure": self.sure}


class AnswerLog:
    """Answers in a file, a line each: JSON if it ends in .jsonl, else CSV.

    `answered` has the label of each file so far, `until` how far films have been answered. A line is there before
    anything else is done to its picture. One that was cut off when a process was killed is removed, so that its picture
    is answered again.
    """

    def __init__(self, path: Path) -> None:
        self._json = path.suffix.lower() == ".jsonl"
        self.answered: dict[Seen, str] = {}
        self.until: dict[Seen, float] = {}
        content = path.read_bytes() if path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        try:
            for row in self._rows(whole.decode(errors="surrogateescape")):
                self._note(Seen(row["path"], int(row["size"]), int(row["modified"])), row)
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(f"{path} holds something else than answers of engram watch; name another file") from error
        self._file = path.open("a", encoding="utf-8", errors="surrogateescape", newline="")
        self._file.truncate(len(whole))
        if not (whole or self._json):
            self._append(",".join(_COLUMNS) + "\n")

    def _rows(self, text: str) -> Iterator[dict[str, Any]]:
        if self._json:
            return map(json.loads, text.splitlines())
        rows = csv.DictReader(io.StringIO(text, newline=""))
        if rows.fieldnames not in (None, list(_COLUMNS)):
            raise ValueError("other columns")
        return iter(rows)

    def _note(self, seen: Seen, row: Mapping[str, Any]) -> None:
        self.answered[seen] = str(row["label"])
        if row["seconds"] not in ("", None):
            self.until[seen] = float(row["seconds"])

    def add(self, seen: Seen, answer: Answer | Unreadable) -> None:
        """Write an answer down; one that could not be read has no label but a reason."""
        told = answer.as_json() if isinstance(answer, Answer) else {"label": "", "reason": answer.reason}
        row = {name: told.get(name, "") for name in _COLUMNS} | seen._asdict()
        if self._json:
            self._append(json.dumps(row) + "\n")
        else:
            line = io.StringIO()
            csv.DictWriter(line, _COLUMNS, lineterminator="\n").writerow(row)
            self._append(line.getvalue())
        self._note(seen, row)

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
    wanted: Wanted,
    *,
    move: Path | None = None,
    every: float = 2.0,
) -> Iterator[Answer | Unreadable]:
    """Keep answering the pictures and films that appear in a folder, and yield each answer once it is in the log.

    A picture is answered when its file has not changed from one look to the next, and again if it changes later; a film
    likewise, a frame `every` so many seconds. With `move`, it then goes to a folder there that is called like the
    answer, a film like its last one. When the model's file changes, it is read again.
    """
    if not inbox.is_dir():
        raise DataError(f"{inbox} is not a folder")
    if move is not None and move.resolve().is_relative_to(inbox.resolve()):
        raise ValueError(f"{move} lies in {inbox}: what is moved there would be found again; name a folder elsewhere")
    before: dict[Path, Seen] = {}
    known: Model | None = None
    ended: set[Seen] = set()  # films that have been seen to their end
    while True:
        present = _look(inbox)
        settled = {path: seen for path, seen in present.items() if before.get(path) == seen}
        films = [path for path, seen in settled.items() if is_film(path) and seen not in ended]
        new = [path for path, seen in settled.items() if not is_film(path) and seen not in log.answered]
        if new or films:
            model = known = store.read(known)
            options = wanted.options(model) | {"device": store.device}
            for answer in predict_images(model, new, **options) if new else ():
                path = new[answer.position]
                log.add(settled[path], answer)
                _move(path, log.answered[settled.pop(path)], move)
                yield answer
            for film in films:
                seen = settled[film]
                first = seen not in log.answered
                for answer in predict_film(model, str(film), every=every, after=log.until.get(seen), **options):
                    if first or isinstance(answer, Answer):
                        log.add(seen, answer)
                        yield answer
                ended.add(seen)
        for (
            path,
            seen,
        ) in settled.items():  # also what a process that was stopped could not move any more
            _move(path, log.answered.get(seen, ""), move)
        before = present
        time.sleep(every)


def watch_stream(
    store: ModelStore, address: str, log: AnswerLog, wanted: Wanted, *, every: float = 2.0
) -> Iterator[Answer | Unreadable]:
    """Keep answering a frame of a stream `every` so many seconds, and yield each answer once it is in the log.

    In place of a file's time of change the log has the time of the answer. A stream that ends or fails is opened again.
    """
    known: Model | None = None
    while True:
        model = known = store.read(known)
        options = wanted.options(model) | {"device": store.device}
        for answer in predict_film(model, address, every=every, live=True, **options):
            log.add(Seen(address, 0, time.time_ns()), answer)
            log.answered.clear()  # nothing of a stream comes twice
            log.until.clear()
            yield answer
        time.sleep(every)


def _look(inbox: Path) -> dict[Path, Seen]:
    found = {}
    pictures, others = scan_pictures(inbox)
    films = [path for path, _ in others if is_film(path)] if can_see_films() else []
    for path in pictures + films:
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

"""A block of pictures and what is left of it: counts, sums and scatter, in a learner that can be merged."""

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engram.encoders.recorded import RecordedEncoder
from engram.errors import ModelFileError
from engram.files import model_file
from engram.images.remote import ReadableImages
from engram.images.stream import encode_all
from engram.learners.base import Label, Mergeable, State
from engram.model import Model

BLOCK = 2048  # of a block: 20 MB of features where there are 2,432 of each
CLASSES = 1024  # of a range: 20 MB of means


@dataclass(frozen=True)
class Setting:
    """What all blocks of one job have in common: an empty learner, the encoder, and where to keep what is done."""

    empty: Mergeable
    encoder: RecordedEncoder  # a worker opens its own
    device: str = "auto"
    folder: Path | None = None

    @classmethod
    def of(cls, model: Model, device: str, folder: Path | None = None) -> "Setting":
        """That of what is to be absorbed by a model."""
        if model.encoder is None:
            raise ValueError("the model was taught feature vectors, and cannot look at pictures")
        return cls(model.empty(), model.encoder, device, folder)

    def key(self) -> bytes:
        """A checksum of all that a result depends on beside the pictures."""
        state = self.empty.state()
        digest = hashlib.blake2b(repr((self.empty.method, state.meta, self.encoder.identity)).encode())
        for name, array in sorted(state.arrays.items()):
            digest.update(name.encode() + array.tobytes())
        return digest.digest()


@dataclass(frozen=True)
class Block:
    """Some pictures and the class of each. `key` is the same for the same pictures, learned the same way."""

    key: str
    images: Sequence[str]
    labels: Sequence[Label]


@dataclass(frozen=True)
class Summary:
    """What was learned from some blocks (None where no picture could be read), and which pictures could not be read."""

    learner: Mergeable | None
    pictures: int
    unreadable: tuple[tuple[str, str], ...] = ()


def cut_blocks(
    classes: Mapping[Label, Sequence[str | os.PathLike[str]]],
    setting: Setting,
    pictures: int = BLOCK,
    most_classes: int = CLASSES,
) -> Iterator[list[Block]]:
    """Cut pictures into blocks, in ranges of classes: no block reaches from one range into the next.

    So whoever adds up the blocks of a range meets the means of its classes alone, however many there are in all.
    """
    if pictures < 1:
        raise ValueError(f"a block has at least one picture, not {pictures}")
    names, job = list(classes), setting.key()
    for start in range(0, len(names), most_classes):
        found = [(str(image), name) for name in names[start : start + most_classes] for image in classes[name]]
        parts = {at: found[at : at + pictures] for at in range(0, len(found), pictures)}
        yield [Block(_key(job, start, at, part), *map(list, zip(*part, strict=True))) for at, part in parts.items()]


def _key(job: bytes, start: int, at: int, part: Sequence[tuple[str, Label]]) -> str:
    digest = hashlib.blake2b(job + b"%d %d" % (start, at), digest_size=16)  # a list may name pictures twice
    for image, name in part:
        digest.update(repr((image, name)).encode())
        with contextlib.suppress(OSError):  # what only the workers can see is known by its address alone
            about = os.stat(image)
            digest.update(b"%d %d" % (about.st_size, about.st_mtime_ns))
    return digest.hexdigest()


def summarise(block: Block, setting: Setting) -> Summary:
    """Decode the pictures of a block, run the network, and keep sums; or read what was kept of it before."""
    file = None if setting.folder is None else setting.folder / f"{block.key}.block"
    if file is not None and (kept := _read(file, setting)) is not None:
        return kept
    seen = encode_all(ReadableImages(block.images), setting.encoder.open(setting.device))
    learner = None
    if len(seen.kept):
        learner = setting.empty.learn(seen.features, [block.labels[at] for at in seen.kept])
    unreadable = tuple((one.name, one.reason) for one in seen.unreadable)
    summary = Summary(learner, len(block.images), unreadable)
    if file is not None:
        _write(file, summary)
    return summary


def combine(summaries: Sequence[Summary]) -> Summary:
    """The summary of all blocks together."""
    learners = [summary.learner for summary in summaries if summary.learner is not None]
    merged = learners[0].merge(*learners[1:]) if learners else None
    unreadable = tuple(one for summary in summaries for one in summary.unreadable)
    return Summary(merged, sum(summary.pictures for summary in summaries), unreadable)


def _write(file: Path, summary: Summary) -> None:
    """Keep a block's result for the case that the job is started again; where that cannot be, it is done again."""
    state = State({}, {}) if summary.learner is None else summary.learner.state()
    header = {"learner": state.meta, "pictures": summary.pictures, "unreadable": summary.unreadable}
    with contextlib.suppress(ModelFileError):
        model_file.write(file, state.arrays, header)


def _read(file: Path, setting: Setting) -> Summary | None:
    try:
        arrays, header = model_file.read(file)
    except ModelFileError:
        return None
    meta = header["learner"]
    learner = type(setting.empty).from_state(State(arrays, meta)) if meta else None
    return Summary(learner, header["pictures"], tuple((name, reason) for name, reason in header["unreadable"]))

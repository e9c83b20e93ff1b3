"""Statistics of pictures as a file of their own, which can be sent in place of the pictures, and merged."""

from collections.abc import Sequence
from dataclasses import replace

from engram.cluster import Setting, Summary, combine, cut_blocks, summarise
from engram.history import Notes
from engram.names import require_name
from engram.store.image_bytes import Source
from engram.store.learn import Classes
from engram.store.model_store import ModelStore
from engram.store.plan import Plan
from engram.store.report import Learned, Report, Step, Tell


def write_statistics(
    store: ModelStore, classes: Classes, plan: Plan, tell: Tell = lambda step: None, *, min_count: int = 1
) -> Report:
    """Write a new model file that holds of each class its name, count and mean, and one scatter for all.

    It has no history, no date, no checksum of a folder and no calibration. Classes with fewer than `min_count` pictures
    that can be read are left out.
    """
    if min_count < 1:
        raise ValueError(f"min_count must be at least 1, not {min_count}")
    for name in classes:
        require_name(name)
    _require_new(store)
    report, model = Report(), plan.new_model(store.device)
    setting = Setting.of(model, store.device)
    total, kept = len(classes), list[Summary]()
    for done, (name, images) in enumerate(classes.items(), 1):
        one = _summarise_class(name, images, setting)
        read = one.pictures - len(one.unreadable)
        report.unreadable += one.unreadable
        if one.learner is None or read < min_count:
            few = f"{read} pictures can be read, and --min-count asks for {min_count}"
            report.skipped.append((name, few if read else "none of its pictures can be read"))
        else:
            kept = [combine([*kept, one])]
            report.learned.append(Learned(name, read, 0, 0.0))
        tell(Step("statistics", "look", done, total))
    if not kept:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in report.skipped)
        raise ValueError(f"there is no class to write statistics of; {reasons or 'the folder is empty'}")
    model = model.absorb(*(one.learner for one in kept if one.learner is not None))
    with store.changing("learn"):
        _require_new(store)
        store.commit(replace(model, notes=Notes()), before=None)
    report.names = model.names
    return report


def _require_new(store: ModelStore) -> None:
    if store.exists():
        raise ValueError(f"{store.path} exists; statistics go into a new file: choose another name, or merge them")


def _summarise_class(name: str, images: Sequence[Source], setting: Setting) -> Summary:
    """Block by block, so that memory stays bounded."""
    blocks = [block for part in cut_blocks({name: [str(image) for image in images]}, setting) for block in part]
    return combine([summarise(block, setting) for block in blocks])

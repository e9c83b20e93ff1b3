"""What engram learn says when it is done."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from engram.cli.app import complain, note, print_json
from engram.cli.options import megabytes, percent

if TYPE_CHECKING:
    from engram.datasets.folders import LeftOut
    from engram.store import ModelStore, Report
    from engram.store.learn import Classes

_MISFITS = 10  # shown
_WARNINGS = 10  # shown


def summarise(
    store: "ModelStore", report: "Report", taught: "Classes", left_out: "Sequence[LeftOut]", as_json: bool
) -> None:
    """Tell what was learned from `taught`, what was not and why, and what looks like a mistake."""
    classes, size, warnings = len(report.names), store.path.stat().st_size, list(_warnings(report, taught))
    if as_json:
        left = [{"path": str(path), "reason": reason} for path, reason in left_out]
        print_json({**_as_json(report, classes, size), "left_out": left, "warnings": warnings})
    for path, reason in report.unreadable:
        complain(f"passed over {path}: {reason}")
    for name, reason in report.skipped:
        complain(f"not learned: {name}: {reason}")
    if report.changed:
        note(f"known, but with other pictures than were learned (--more takes them): {', '.join(report.changed)}")
    if not report.learned:
        note(f"nothing new to learn; {store.path} knows {classes} classes")
        return
    new = f"{len(report.learned) - len(report.more)} of them new"
    more = f", {len(report.more)} with more pictures" if report.more else ""
    note(f"{store.path} knows {classes} classes, {new}{more}; {report.seconds:.1f} s, {megabytes(size)}")
    if report.workers_lost:
        note(f"{report.workers_lost} workers were lost; {report.blocks_retried} blocks of pictures were done again")
    for warning in warnings[:_WARNINGS]:
        complain(f"warning: {warning}")
    if len(warnings) > _WARNINGS:
        complain(f"warning: {len(warnings) - _WARNINGS} more like these; --json lists them all")
    for one in report.misfits[:_MISFITS]:
        share = percent(one.probability)
        note(f"look again: {one.picture} was taught as {one.name} and looks like {one.answer} ({share})")
    if len(report.misfits) > _MISFITS:
        note(f"look again: {len(report.misfits) - _MISFITS} more, less sure; --json lists them all")


def _warnings(report: "Report", taught: "Classes") -> "Iterator[str]":
    """What was learned, but is likely not what was meant."""
    from engram.images.decode import source_name
    from engram.store import similar_name, twins

    if report.drift:
        yield report.drift
    learned = {one.name: one for one in report.learned}
    pairs = {name: other for name in learned if (other := similar_name(name, report.names))}
    for name, other in pairs.items():
        if pairs.get(other) != name or name < other:  # of two that are both new, one line is enough
            yield f"{name} and {other} are two classes now; if they are one, forget one and learn it under one name"
    for one in learned.values():
        if one.pictures == 1 and one.name not in report.more:
            yield f"{one.name} was learned from 1 picture, and will often be missed; five or more do better (--more)"
    for first, image, second, twin in twins(taught) if learned else ():
        if first in learned or second in learned:
            yield f"one picture under two names: {source_name(image)} ({first}) and {source_name(twin)} ({second})"


def _as_json(report: "Report", classes: int, size: int) -> dict[str, Any]:
    return {
        "learned": [vars(one) for one in report.learned],
        "known": report.known,
        "changed": report.changed,
        "skipped": [{"name": name, "reason": reason} for name, reason in report.skipped],
        "unreadable": [{"path": path, "reason": reason} for path, reason in report.unreadable],
        "misfits": [vars(one) for one in report.misfits],
        "classes": classes,
        "bytes": size,
        "seconds": round(report.seconds, 2),
        "workers_lost": report.workers_lost,
        "blocks_retried": report.blocks_retried,
    }

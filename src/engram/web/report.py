"""The report on a model: one HTML page that needs no other file."""

from collections.abc import Mapping, Sequence
from html import escape

from engram.html import Cell, document, table, tiles
from engram.web.schemas import ModelView


def write_report(model: ModelView) -> str:
    """The model in words and tables."""
    taught = sum(sum(change.pictures.values()) for change in model.history if change.what in ("base", "learn", "more"))
    size = sum(change.bytes for change in model.history)
    numbers = [(f"{len(model.classes):,}", "classes"), (f"{taught:,}", "pictures learned from")]
    if model.bytes_per_class:
        numbers.append((f"{model.bytes_per_class:,} bytes", "kept per class"))
    numbers.append((f"{model.bytes / 1e6:,.1f} MB", "the model file"))
    if size:
        numbers.append((f"{size / 1e6:,.1f} MB", "of pictures, not kept"))
    classes = {
        "class": [one.name for one in model.classes],
        "pictures": ["" if one.pictures is None else f"{one.pictures:,}" for one in model.classes],
        "right answers": [f"{one.health.share:.0%}" if one.health else "" for one in model.classes],
        "learned": [one.learned or "" for one in model.classes],
        "increment": [{None: "", 0: "base"}.get(one.increment, str(one.increment)) for one in model.classes],
        "nearest classes": [
            ", ".join(f"{near.name} ({near.similarity:.2f})" for near in one.neighbours) for one in model.classes
        ],
    }
    changes = {
        "when": [change.when for change in model.history],
        "what": [str(change.what) for change in model.history],
        "classes": [" → ".join(filter(None, (", ".join(c.pictures), c.new_name))) for c in model.history],
        "pictures": [f"{sum(change.pictures.values()):,}" for change in model.history],
        "right answers, all classes": ["" if c.accuracy is None else f"{c.accuracy:.0%}" for c in model.history],
    }
    unknown = model.unknown
    refused = f"About {100 * unknown.share:.0f} % of pictures of known classes are called unknown." if unknown else ""
    samples = model.bytes_by_group.get("stored samples", 0)
    parts = [
        f"<h1>{escape(model.name)}</h1>",
        tiles(numbers),
        f"<p>Version {model.version}. Pictures are seen by {escape(model.backbone)}.</p>",
        f"<p>{refused}</p>" if unknown else "",
        "<h2>Classes</h2>" + _table("Classes", classes),
        "<h2>Changes</h2>" + _table("Changes", changes),
        f"<p>Kept: {samples:,} bytes of feature vectors of pictures. Not kept: no picture, no file name.</p>"
        if samples
        else "<p>Not kept: no picture, no feature vector of a picture, no file name.</p>",
    ]
    return document(f"engram: {model.name}", parts)


def _table(name: str, columns: Mapping[str, Sequence[str]]) -> str:
    """A table without the columns that are empty."""
    shown = {title: cells for title, cells in columns.items() if any(cells)}
    rows = (
        [heading, *(Cell(escape(cell), "text") for cell in cells)]
        for heading, *cells in zip(*shown.values(), strict=True)
    )
    return table(name, [Cell(escape(title), "text") for title in shown], rows)

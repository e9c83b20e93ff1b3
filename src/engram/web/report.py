"""The report on a model: one HTML page that needs no other file."""

from collections.abc import Mapping, Sequence
from html import escape

from engram.bench.report.document import document
from engram.web.schemas import ModelView


def write_report(model: ModelView) -> str:
    """The model in words and tables."""
    taught = sum(sum(change.pictures.values()) for change in model.history if change.what in ("base", "learn", "more"))
    size = sum(change.bytes for change in model.history)
    tiles = {"classes": f"{len(model.classes):,}", "pictures learned from": f"{taught:,}"}
    if model.bytes_per_class:
        tiles["kept per class"] = f"{model.bytes_per_class:,} bytes"
    tiles["the model file"] = f"{model.bytes / 1e6:,.1f} MB"
    if size:
        tiles["of pictures, not kept"] = f"{size / 1e6:,.1f} MB"
    items = "".join(f"<li><b>{value}</b><span>{what}</span></li>" for what, value in tiles.items())
    classes = {
        "class": [one.name for one in model.classes],
        "pictures": ["" if one.pictures is None else f"{one.pictures:,}" for one in model.classes],
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
        "held-back pictures right": [f"{c.right} of {c.checked}" if c.checked else "" for c in model.history],
    }
    unknown = model.unknown
    samples = model.bytes_by_group.get("stored samples", 0)
    parts = [
        f"<h1>{escape(model.name)}</h1>",
        f'<ul class="tiles">{items}</ul>',
        f"<p>Version {model.version}. Pictures are seen by {escape(model.backbone)}.</p>",
        f"<p>Below a score of {unknown.similarity:.3f} a picture is of no known class.</p>" if unknown else "",
        "<h2>Classes</h2>" + _table(classes),
        "<h2>Changes</h2>" + _table(changes),
        f"<p>Kept: {samples:,} bytes of feature vectors of pictures. Not kept: no picture, no file name.</p>"
        if samples
        else "<p>Not kept: no picture, no feature vector of a picture, no file name.</p>",
    ]
    return document(f"engram: {model.name}", parts)


def _table(columns: Mapping[str, Sequence[str]]) -> str:
    """An HTML table, without the columns that are empty."""
    shown = {name: cells for name, cells in columns.items() if any(cells)}
    head = "".join(f'<th scope="col" class="text">{escape(name)}</th>' for name in shown)
    body = ""
    for row in zip(*shown.values(), strict=True):
        body += "<tr>" + "".join(f'<td class="text">{escape(cell)}</td>' for cell in row) + "</tr>"
    return f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'

"""The report on a model: one HTML page that needs no other file."""

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
    classes = [
        {
            "class": one.name,
            "pictures": "" if one.pictures is None else f"{one.pictures:,}",
            "learned": one.learned or "",
            "increment": {None: "", 0: "base"}.get(one.increment, str(one.increment)),
            "nearest classes": ", ".join(f"{near.name} ({near.similarity:.2f})" for near in one.neighbours),
        }
        for one in model.classes
    ]
    changes = [
        {
            "when": change.when,
            "what": change.what,
            "classes": ", ".join(change.pictures) + (f" → {change.new_name}" if change.new_name else ""),
            "pictures": f"{sum(change.pictures.values()):,}",
            "held-back pictures right": f"{change.right} of {change.checked}" if change.checked else "",
        }
        for change in model.history
    ]
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


def _table(rows: list[dict[str, str]]) -> str:
    """The columns that have an entry in some row."""
    columns = [name for name in (rows[0] if rows else ()) if any(row[name] for row in rows)]
    head = "".join(f'<th scope="col" class="text">{escape(name)}</th>' for name in columns)
    body = "".join(
        "<tr>" + "".join(f'<td class="text">{escape(row[n])}</td>' for n in columns) + "</tr>" for row in rows
    )
    return f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'

"""An evaluation as a page to look at: one file, with small copies of the pictures the model got wrong."""

import base64
import io
from collections.abc import Iterator
from html import escape
from pathlib import Path

from PIL import Image

from engram.html import Cell, document, table, tiles
from engram.images import ImageError, load_image, source_name
from engram.io.atomic import replacing
from engram.store.evaluate import Evaluation, Mistake
from engram.store.image_bytes import Source

MOST_PICTURES = 300  # shown; a page with more is slow to open
_THUMBNAIL = 168
_LABELLED = 60  # classes whose names fit beside the matrix
_STYLE = """
.bar { display: inline-block; height: .6rem; border-radius: .3rem; background: var(--c0); vertical-align: middle; }
.matrix { max-width: 100%; height: auto; font-size: 10px; fill: var(--ink); }
.matrix .right { fill: var(--c0); } .matrix .wrong { fill: var(--c1); } .matrix .grid { fill: var(--raised); }
.matrix .count { font-size: 9px; text-anchor: middle; fill: var(--page); font-weight: 600; }
.gallery { display: grid; gap: 1rem; margin: 1rem 0; padding: 0; list-style: none;
  grid-template-columns: repeat(auto-fill, minmax(min(10.5rem, 100%), 1fr)); }
.gallery img { display: block; width: 100%; aspect-ratio: 1; object-fit: cover; border-radius: .5rem;
  background: var(--raised); }
.gallery span { display: block; font-size: .85rem; overflow-wrap: anywhere; }
.gallery .said { color: var(--low); font-weight: 600; } .gallery .file { color: var(--soft); font-size: .75rem; }
"""


def write_evaluation_page(path: Path, result: Evaluation, *, model: str, folder: str) -> None:
    """Write the report of an evaluation."""
    page = document(f"engram: {model} on {folder}", _parts(result, model, folder), _STYLE)
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def _parts(result: Evaluation, model: str, folder: str) -> Iterator[str]:
    yield f"<h1>What {escape(model)} says to {escape(folder)}</h1>"
    numbers = [
        (f"{result.accuracy:.1%}", f"of {result.pictures:,} pictures right"),
        (f"{len(result.per_class()):,}", "classes with pictures"),
        (f"{len(result.wrong):,}", "taken for something else"),
    ]
    if result.unreadable:
        numbers.append((f"{len(result.unreadable):,}", "could not be read"))
    yield tiles(numbers)
    if result.strange:
        names = escape(", ".join(result.strange))
        yield f"<p>The model does not know these classes, so no answer about them can be right: {names}.</p>"
    yield "<h2>Class by class</h2>" + _table(result)
    yield (
        "<h2>What is taken for what</h2><p>Rows are the truth, columns the answer, classes in the order they were "
        "learned. Right answers lie on the diagonal; hover over a cell to read it.</p>"
    )
    yield _matrix(result)
    yield "<h2>Taken for something else</h2>" + _gallery(result.wrong)


def _table(result: Evaluation) -> str:
    rows = []
    for name, total, right, other in result.per_class():
        share = right / total
        bar = Cell(f'<span class="bar" style="width:{6 * share:.2f}rem"></span>', "text")
        rows.append((name, f"{total:,}", f"{right:,}", f"{share:.1%}", bar, Cell(escape(other), "text")))
    head = ("class", "pictures", "right", "share", "", Cell("most often taken for", "text"))
    return table("Class by class", head, rows)


def _matrix(result: Evaluation) -> str:
    n = len(result.names)
    labelled = n <= _LABELLED
    cell = min(36, max(16, 560 // n)) if labelled else max(2, 900 // n)
    margin = 6 * max((min(len(name), 30) for name in result.names), default=0) + 8 if labelled else 0
    side = n * cell
    marks = [f'<rect class="grid" x="{margin}" y="{margin}" width="{side}" height="{side}"/>']
    totals = {name: total for name, total, _, _ in result.per_class()}
    place = {name: i for i, name in enumerate(result.names)}
    for (truth, answer), count in sorted(result.counts.items(), key=lambda one: tuple(place[name] for name in one[0])):
        i, j, share = place[truth], place[answer], count / totals[truth]
        title = f"{truth} taken for {answer}: {count} of {totals[truth]}"
        x, y = margin + j * cell, margin + i * cell
        kind = "right" if i == j else "wrong"
        marks.append(
            f'<rect class="{kind}" x="{x}" y="{y}" width="{cell}" height="{cell}" opacity="{0.35 + 0.65 * share:.2f}">'
            f"<title>{escape(title)}</title></rect>"
        )
        if labelled:
            marks.append(f'<text class="count" x="{x + cell / 2}" y="{y + cell / 2 + 3}">{count}</text>')
    if labelled:
        for i, name in enumerate(result.names):
            text, at = escape(name[:29] + "…" if len(name) > 30 else name), margin + i * cell + cell / 2 + 3
            marks.append(f'<text x="{margin - 4}" y="{at}" text-anchor="end">{text}</text>')
            marks.append(f'<text transform="translate({at},{margin - 4}) rotate(-90)">{text}</text>')
    size = margin + side
    return (
        f'<div class="scroll" tabindex="0"><svg class="matrix" role="img" aria-label="Confusion matrix of {n} classes" '
        f'width="{size}" viewBox="0 0 {size} {size}">{"".join(marks)}</svg></div>'
    )


def _gallery(wrong: list[Mistake]) -> str:
    if not wrong:
        return "<p>No picture was.</p>"
    shown = sorted(wrong, key=lambda one: (one.truth, one.answer, source_name(one.image)))[:MOST_PICTURES]
    items = []
    for one in shown:
        items.append(
            f'<li><img src="{_thumbnail(one.image)}" alt="{escape(one.truth)}" loading="lazy">'
            f"<span>{escape(one.truth)}</span>"
            f'<span class="said">taken for {escape(one.answer)} ({100 * one.probability:.0f} %)</span>'
            f'<span class="file">{escape(Path(source_name(one.image)).name)}</span></li>'
        )
    note = f'<p class="note">The first {len(shown):,} of {len(wrong):,}.</p>' if len(shown) < len(wrong) else ""
    return f'{note}<ul class="gallery">{"".join(items)}</ul>'


def _thumbnail(image: Source) -> str:
    try:
        picture = load_image(image)
    except ImageError:  # it could be read a moment ago, and is gone
        return "data:,"
    picture.thumbnail((2 * _THUMBNAIL, _THUMBNAIL), Image.Resampling.BILINEAR)
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=80)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"

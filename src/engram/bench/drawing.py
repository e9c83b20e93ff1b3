"""A picture is a few panels: side by side in a PNG, one by one in the page, where they wrap on a small screen."""

import io
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engram.bench.plots import COLOURS, GREY, load_pyplot
from engram.bench.results import Row

INK = "#1b1f24"
# How opaque grey areas are: what is only there to compare with.
FAINT = 0.45

_SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",  # text stays text: sharp, searchable, in the page's font
    "text.parse_math": False,  # a class may be called "$100"
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GREY,
    "grid.alpha": 0.25,
    "lines.solid_capstyle": "round",
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
}
# In the page colours are named, so that light and dark may differ.
_NAMED = {
    INK: "currentColor",
    GREY.lower(): "var(--grey)",
    **{colour.lower(): f"var(--c{i})" for i, colour in enumerate(COLOURS)},
}


@dataclass(frozen=True)
class Key:
    """A legend's entry: a line, or a block where `block` is set."""

    label: str
    colour: str
    dash: str = "-"
    block: bool = False


@dataclass(frozen=True)
class Panel:
    """One pair of axes: what it shows, in words, and how it is drawn."""

    title: str
    alt: str
    draw: Callable[[Any], None]
    below: str = ""


@dataclass(frozen=True)
class Picture:
    """Panels of one size, at most `columns` in a row."""

    name: str
    panels: Sequence[Panel]
    size: tuple[float, float] = (4.3, 3.3)
    columns: int = 3
    keys: Sequence[Key] = field(default=())
    note: str = ""


def style(position: int) -> tuple[str, str]:
    """Colour and dashes of the row at some position; six colours, then the same again, dashed."""
    return COLOURS[position % len(COLOURS)], ("-", "--", "-.", ":")[position // len(COLOURS) % 4]


def row_keys(rows: Sequence[Row], block: bool = False) -> list[Key]:
    """The legend's entries of some rows."""
    return [Key(row.label, *style(i), block=block) for i, row in enumerate(rows)]


def short(text: str, length: int = 24) -> str:
    """The beginning of a text that is too long for its place."""
    return text if len(text) <= length else text[: length - 1] + "…"


def save_png(picture: Picture, path: Path, title: str) -> None:
    """All panels in one image."""
    pyplot = load_pyplot()
    columns = min(picture.columns, len(picture.panels))
    lines = -(-len(picture.panels) // columns)
    width, height = picture.size
    with pyplot.rc_context(_SETTINGS):
        figure, axes = pyplot.subplots(
            lines, columns, figsize=(width * columns, (height + 0.3) * lines + 0.7), squeeze=False, layout="constrained"
        )
        for axis, panel in zip(axes.flat, picture.panels, strict=False):
            panel.draw(axis)
            axis.set_title(panel.title, fontsize=11)
        for axis in list(axes.flat)[len(picture.panels) :]:
            axis.set_visible(False)
        figure.suptitle(title, fontsize=12, fontweight="bold")
        if picture.keys:
            handles = [_handle(key) for key in picture.keys]
            figure.legend(handles=handles, loc="outside lower center", ncols=min(6, len(handles)), frameon=False)
        elif picture.note:
            figure.supxlabel(textwrap.fill(picture.note, int(14 * width * columns)), fontsize=9)
        figure.savefig(path, dpi=130, metadata={"Software": None})
        pyplot.close(figure)


def svg(picture: Picture, number: int, salt: str) -> str:
    """One panel as an element to put into a page; `salt` keeps its ids apart from those of other pictures."""
    pyplot = load_pyplot()
    with pyplot.rc_context({**_SETTINGS, "svg.hashsalt": f"{salt}-{picture.name}-{number}"}):
        figure, axis = pyplot.subplots(figsize=picture.size, layout="constrained")
        picture.panels[number].draw(axis)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        pyplot.close(figure)
    text = out.getvalue()
    text = re.sub(r"<(metadata|style).*?</\1>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'<g id="[^"]*"', "<g", text)  # the same in every picture, and nothing refers to them
    text = re.sub(r"\n\s*", "\n", text)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r'\1 aria-hidden="true"', text, count=1)
    return re.sub(r"#[0-9a-f]{6}\b", lambda match: _NAMED.get(match[0], match[0]), text)


def _handle(key: Key) -> Any:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if key.block:
        return Patch(facecolor=key.colour, alpha=FAINT if key.colour == GREY else 1.0, label=key.label)
    line: Any = Line2D([], [], color=key.colour, linewidth=2, label=key.label)
    line.set_linestyle(key.dash)
    return line

"""A figure is a few panels: side by side in a PNG, one by one in a page, where they wrap on a small screen."""

import importlib.util
import io
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Okabe and Ito's colours: told apart by everyone. Grey is for what is only there to compare with.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
GREY = "#777777"
INK = "#1b1f24"

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
class Panel:
    """One pair of axes: what it shows, in words, and how it is drawn."""

    title: str
    alt: str
    draw: Callable[[Any], None]
    below: str = ""


@dataclass(frozen=True)
class Figure:
    """Panels of one size, at most `columns` in a row."""

    name: str
    panels: Sequence[Panel]
    size: tuple[float, float] = (4.3, 3.3)
    columns: int = 3
    note: str = ""


def can_draw() -> bool:
    """Whether matplotlib is there."""
    return importlib.util.find_spec("matplotlib") is not None


def load_pyplot() -> Any:
    """Matplotlib, drawing to files only; needs the extra `engram-learn[plot]`."""
    try:
        import matplotlib
    except ImportError:
        raise ValueError("drawing needs matplotlib; install it with: pip install 'engram-learn[plot]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def style(position: int) -> tuple[str, str]:
    """Colour and dashes of the line at some position; six colours, then the same again, dashed."""
    return COLOURS[position % len(COLOURS)], ("-", "--", "-.", ":")[position // len(COLOURS) % 4]


def short(text: str, length: int = 24) -> str:
    """The beginning of a text that is too long for its place."""
    return text if len(text) <= length else text[: length - 1] + "…"


def name_lines(axis: Any, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Write the name of every line beside its end: x and y of the end, the name, the colour. Limits are set before."""
    to_axis = axis.transData + axis.transAxes.inverted()
    found = sorted((float(to_axis.transform((x, y))[1]), (x, y), name, colour) for x, y, name, colour in ends)
    height = axis.figure.get_size_inches()[1] / axis.get_gridspec().nrows
    places = move_apart([place for place, *_ in found], min(0.2 / height, 0.95 / len(found)))
    for place, (_, end, name, colour) in zip(places, found, strict=True):
        axis.annotate(
            short(name, 34),
            xy=end,
            xytext=(1.05, place),
            textcoords="axes fraction",
            color=colour,
            va="center",
            fontsize=9,
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.6, "relpos": (0, 0.5), "shrinkB": 1},
            annotation_clip=False,
        )


def move_apart(places: Sequence[float], least: float) -> list[float]:
    """Ascending heights, from 0 to 1, moved up where two are nearer than `least`; and down where one would leave."""
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + least) if moved else place)
    ceiling = 1 - least / 2
    for number in reversed(range(len(moved))):
        moved[number] = min(moved[number], ceiling)
        ceiling = moved[number] - least
    return moved


def save_png(figure: Figure, path: Path, title: str) -> None:
    """All panels in one image."""
    pyplot = load_pyplot()
    columns = min(figure.columns, len(figure.panels))
    lines = -(-len(figure.panels) // columns)
    width, height = figure.size
    with pyplot.rc_context(_SETTINGS):
        image = pyplot.figure(figsize=(width * columns, (height + 0.3) * lines + 0.7), layout="constrained")
        for number, panel in enumerate(figure.panels, 1):
            axis = image.add_subplot(lines, columns, number)
            panel.draw(axis)
            axis.set_title(panel.title, fontsize=11)
        image.suptitle(title, fontsize=12, fontweight="bold")
        if figure.note:
            image.supxlabel(textwrap.fill(figure.note, int(14 * width * columns)), fontsize=9)
        image.savefig(path, dpi=130, metadata={"Software": None})
        pyplot.close(image)


def svg(figure: Figure, number: int, salt: str) -> str:
    """One panel as an element to put into a page; `salt` keeps its ids apart from those of other figures."""
    pyplot = load_pyplot()
    with pyplot.rc_context({**_SETTINGS, "svg.hashsalt": f"{salt}-{figure.name}-{number}"}):
        image, axis = pyplot.subplots(figsize=figure.size, layout="constrained")
        figure.panels[number].draw(axis)
        out = io.StringIO()
        image.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        pyplot.close(image)
    text = out.getvalue()
    text = re.sub(r"<(metadata|style).*?</\1>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'<g id="[^"]*"', "<g", text)  # the same in every figure, and nothing refers to them
    text = re.sub(r"\n\s*", "\n", text)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r'\1 aria-hidden="true"', text, count=1)
    return re.sub(r"#[0-9a-f]{6}\b", lambda match: _NAMED.get(match[0], match[0]), text)

"""Pictures of results; needs the extra `engram[plot]`."""

import os
from typing import Any

from engram.bench.demo import Demonstration

# Okabe and Ito's colours: told apart by everyone. Grey is for what is only there to compare with.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
GREY = "#777777"


def load_pyplot() -> Any:
    """Matplotlib, drawing to files only."""
    try:
        import matplotlib
    except ImportError:
        raise ValueError("drawing needs matplotlib; install it with: pip install 'engram[plot]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def plot_demonstration(demonstration: Demonstration, path: str | os.PathLike[str]) -> None:
    """Accuracy over the classes seen: on all of them, and on the five base classes alone."""
    pyplot = load_pyplot()
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
    panels = (("alpha_all", "All digits seen so far"), ("alpha_base", "The five digits learned first"))
    for axis, (field, title) in zip(axes, panels, strict=True):
        axis.axhline(demonstration.alpha_ideal, color=GREY, linestyle=":", label="offline, all data at once")
        for row, colour in zip(demonstration.rows, COLOURS, strict=False):
            plain = row.method == "unconsolidated"
            axis.plot(
                [r.classes_seen for r in row.results],
                [getattr(r, field) for r in row.results],
                color=GREY if plain else colour,
                linestyle="--" if plain else "-",
                marker="o",
                markersize=4,
                label="without consolidation" if plain else row.method,
            )
        axis.set_title(title, fontsize=11)
        axis.set_xlabel("digits learned, one at a time after the first five")
        axis.set_ylim(0, 1.05)
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("test accuracy")
    axes[0].legend(frameon=False, fontsize=9, loc="center right")
    figure.savefig(path, dpi=130)
    pyplot.close(figure)

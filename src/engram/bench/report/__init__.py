"""One or more `results.json` as a page to look at: everything in one HTML file, and the pictures as PNG."""

from collections.abc import Sequence
from pathlib import Path

from engram.bench.costs import cost, memory
from engram.bench.drawing import save_png
from engram.bench.figures import accuracy, confusion, psi
from engram.bench.plots import load_pyplot
from engram.bench.report.page import render
from engram.bench.results import Json, group, load

__all__ = ["write_report"]


def write_report(results: Sequence[Path | str | Json], out: Path | str) -> None:
    """Write `report.html` and its pictures to the folder `out`.

    Parameters
    ----------
    results : files written by `engram bench`, folders that hold one as `results.json`, or their content. Records of the
        same data and backbone are compared; a method that appears twice is labelled by the name of its run's folder.
    out : made if it is not there. The first data set and backbone give `psi.png`, `accuracy.png`, `confusion.png`,
        `memory.png` and `seconds.png`, the next ones `psi-2.png`, and so on.
    """
    load_pyplot()
    runs = load(results)
    groups = group(runs)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for number, members in enumerate(groups, 1):
        makers = (psi, accuracy, confusion, memory, cost)
        pictures = [picture for make in makers if (picture := make(members)).panels]
        for picture in pictures:
            suffix = f"-{number}" if number > 1 else ""
            save_png(picture, folder / f"{picture.name}{suffix}.png", members.title)
        drawn.append(pictures)
    (folder / "report.html").write_text(render(runs, groups, drawn), encoding="utf-8")

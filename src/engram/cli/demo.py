"""engram demo: pictures taught one class at a time; then, with the extra `paper`, the paper's four configurations."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from engram.cli.app import app, console, note, print_json
from engram.cli.options import MAIN, Device

if TYPE_CHECKING:
    from PIL import Image

SHAPES = ("circle", "square", "triangle", "star", "stripes", "dots")
TAUGHT, ASKED = 10, 10  # pictures of each
_SECOND = "the paper's four configurations on handwritten digits take the extra: pip install 'engram-learn[paper,plot]'"


@app.command(rich_help_panel=MAIN)
def demo(
    json_path: Annotated[
        str | None, typer.Option("--json", metavar="PATH", help="Write the numbers as JSON; - is standard output.")
    ] = None,
    plot: Annotated[Path, typer.Option(help="Where to save the figure.")] = Path("engram-demo.png"),
    seed: Annotated[int, typer.Option(help="What is drawn, and in which order classes come.")] = 0,
    device: Device = "auto",
) -> None:
    """Teach made-up pictures one class at a time, ask, forget one; then compare the paper's configurations.

    The second act trains small networks on handwritten digits and takes the extra `paper`.
    """
    from engram import plugins

    shown = console if json_path == "-" else Console()
    found: dict[str, Any] = {"pictures": _first_act(shown, seed, device)}
    acts = plugins.registered("engram.demo")
    try:
        found["digits"] = acts[0].load()(shown, plot, seed, device)
    except (ImportError, IndexError):
        note(_SECOND)
    if json_path == "-":
        print_json(found)
    elif json_path is not None:
        import json

        Path(json_path).write_text(json.dumps(found, indent=2, allow_nan=False) + "\n")


def _first_act(shown: Console, seed: int, device: str) -> list[dict[str, Any]]:
    """Shapes, three at first and then one at a time, and how many new pictures of all of them are right."""
    import numpy as np

    from engram.store.learn import learn_classes
    from engram.store.model_store import ModelStore
    from engram.store.plan import Plan
    from engram.store.predict import Answer, predict_images

    shapes = [SHAPES[i] for i in np.random.default_rng(seed).permutation(len(SHAPES))]
    table = Table(title="Made-up pictures: three classes first, then one at a time, without the old pictures")
    for heading in ("learned", "pictures", "seconds", "classes", "new pictures right"):
        table.add_column(heading, justify="left" if heading == "learned" else "right")
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        store = ModelStore(Path(folder) / "shapes.engram", device=device)

        def right(known: list[str]) -> float:
            """The share of new pictures of these classes that are answered right."""
            pictures = [(name, image) for name in known for image in drawings(name, ASKED, seed + 1)]
            answers = predict_images(store.read(), [image for _, image in pictures], device=device)
            said = [one.label for one in answers if isinstance(one, Answer)]
            return sum(name == label for (name, _), label in zip(pictures, said, strict=True)) / len(pictures)

        for new in (shapes[:3], *([one] for one in shapes[3:])):
            began = time.perf_counter()
            learn_classes(store, {name: _saved(Path(folder), name, seed) for name in new}, Plan())
            seconds, known = time.perf_counter() - began, store.read().names
            rows.append({"learned": new, "seconds": seconds, "classes": len(known), "right": right(known)})
            cells = (
                ", ".join(new),
                str(TAUGHT * len(new)),
                f"{seconds:.1f}",
                str(len(known)),
                f"{rows[-1]['right']:.0%}",
            )
            table.add_row(*cells)
        store.forget(shapes[0])
        rows.append({"forgot": shapes[0], "classes": len(shapes) - 1, "right": right(shapes[1:])})
        table.add_row(f"forgot {shapes[0]}", "", "", str(len(shapes) - 1), f"{rows[-1]['right']:.0%}")
    shown.print(table)
    return rows


def _saved(folder: Path, name: str, seed: int) -> list[Path]:
    (folder / name).mkdir()
    paths = [folder / name / f"{i}.png" for i in range(TAUGHT)]
    for path, image in zip(paths, drawings(name, TAUGHT, seed), strict=True):
        image.save(path)
    return paths


def drawings(shape: str, n: int, seed: int, size: int = 160) -> "Iterator[Image.Image]":
    """Pictures of a shape, in colours, places and sizes of their own."""
    import numpy as np
    from PIL import Image, ImageDraw

    rng = np.random.default_rng([seed, SHAPES.index(shape)])
    for _ in range(n):
        paper, ink = (tuple(map(int, rng.integers(low, low + 100, 3))) for low in (150, 10))
        image = Image.new("RGB", (size, size), paper)
        pen, side = ImageDraw.Draw(image), int(size * rng.uniform(0.4, 0.6))
        x, y = (int(size * share) for share in rng.uniform(0.1, 0.35, 2))
        middle, gap = (x + side / 2, y + side / 2), int(rng.integers(16, 28))
        match shape:
            case "circle":
                pen.ellipse([x, y, x + side, y + side], fill=ink)
            case "square":
                pen.rectangle([x, y, x + side, y + side], fill=ink)
            case "triangle":
                pen.regular_polygon((*middle, side / 2), 3, rotation=int(rng.integers(360)), fill=ink)
            case "star":
                for turn in (0, 60):
                    pen.regular_polygon((*middle, side / 2), 3, rotation=turn, fill=ink)
            case "stripes":
                for top in range(int(rng.integers(0, 10)), size, gap):
                    pen.rectangle([0, top, size, top + gap // 2], fill=ink)
            case "dots":
                for left in range(int(rng.integers(0, 10)), size, gap):
                    for top in range(0, size, gap):
                        pen.ellipse([left, top, left + gap // 2, top + gap // 2], fill=ink)
        yield image

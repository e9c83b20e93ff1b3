"""The tables of docs/peers.md: what results/trials says. `benchmarks/reproduction.py` puts them there."""

from pathlib import Path

from spaces import SPACES
from trials import PARTS, Book, choose

from engram.bench.results import told_title

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "results" / "trials"
HEAD = (
    "| method | trials | preset before: base / new / all | chosen: base / new / all | all, over the trials | chosen |",
    "|---|---|---|---|---|---|",
)


def table(dataset, folder=FOLDER):
    """A line for every method that has trials."""
    books = {method: Book(folder, dataset, method).content.get("trials", []) for method in SPACES}
    lines = [line(method, records) for method, records in books.items() if choose(records)]
    return "\n".join([*HEAD, *lines]) if lines else "No trials of this data set are recorded yet."


def line(method, records):
    """The preset as it was, the best, how many trials, and how far apart they are."""
    chosen, measured = choose(records), [record["all"] for record in records if "failed" not in record]
    failed = len(records) - len(measured)
    first = next((record for record in records if record["trial"] == 1 and "failed" not in record), None)
    settings = ", ".join(f"`{name}` {value}{edge(name, value, records)}" for name, value in chosen["settings"].items())
    cells = (
        told_title(method),
        f"{len(records)}, {failed} failed" if failed else str(len(records)),
        accuracies(first) if first else "failed",
        accuracies(chosen),
        f"{number(min(measured))} to {number(max(measured))}",
        settings or "the preset as it was",
    )
    return f"| {' | '.join(cells)} |"


def edge(name, value, records):
    """Whether nothing beyond was tried: then something better may lie there."""
    tried = {record["config"][name] for record in records}
    if isinstance(value, str) or len(tried) < 3:
        return ""
    return " (lowest)" if value == min(tried) else " (highest)" if value == max(tried) else ""


def accuracies(record):
    return " / ".join(number(record[part]) for part in PARTS)


def number(accuracy):
    return f"{accuracy:.3f}".removeprefix("0")

"""What README.md and docs/method.md say of the results: a table and a few sentences."""

from engram.bench.learners import METHODS
from engram.bench.published import OWN
from engram.bench.results import dataset_title
from engram.bench.statistics import ALPHAS, paired, summarise
from engram.bench.tables import markdown
from engram.bench.units import join_words, short_number, wrap
from ledger.claims import accuracy, beats, find, interval
from ledger.comparison import ended, kept_mb

DATASETS = ("cifar100", "cub200")
FEATURES = "resnet50:pooled"
BOUNDS = ("finetune", "joint")  # forgets everything; keeps everything
OURS = (*OWN, "prototypes", "whitened", "imagenet", "fearnet-head")
README = {
    "whitened": "**Whitened prototypes**, the default",
    "ncm": "nearest class mean",
    "slda": "SLDA: shrunk linear discriminants, streaming",
    "ranpac": "RanPAC",
    "fearnet": "FearNet",
    "mas": "MAS, the paper's",
    "joint": "*joint training, all data kept*",
}
NUMBERS = (
    *("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)


def systems():
    """How many there are to compare with."""
    others = [name for name in METHODS if name not in OURS and name not in BOUNDS]
    return f"{NUMBERS[len(others)]} systems and {NUMBERS[len(BOUNDS)]} bounds"


def row_of(rows, dataset, method, features=FEATURES):
    for row in rows:
        if (row.record["dataset"], row.features, row.method, row.variant) == (dataset, features, method, ""):
            return row
    raise ValueError(f"results/ has no row of {method} on {features} of {dataset}")


def readme_table(rows, logistic):
    """The few methods a reader should know about, on the way and at the end, and what they keep."""
    lines = []
    for method, title in README.items():
        both = [row_of(rows, dataset, method) for dataset in DATASETS]
        numbers = [short_number(n) for row in both for n in (accuracy(row), ended(row))]
        kept = " and ".join(map(kept_mb, both))
        lines.append([title, *numbers, f"{kept} MB"])
    ends = [short_number(logistic[dataset]["accuracy"]) for dataset in DATASETS]
    lines.insert(-1, ["*logistic regression, all data at once*", "", ends[0], "", ends[1], ""])
    head = ["", "CIFAR-100, on the way", "at the end", "CUB-200 birds, on the way", "at the end", "kept at the end"]
    return markdown(head, lines)


def orders_sentence(rows):
    """How many class orders are behind the table."""
    found = {}
    for dataset in DATASETS:
        for method, title in README.items():
            n = summarise(row_of(rows, dataset, method).record, "psi_all").orders
            found.setdefault(dataset, {}).setdefault(n, []).append(title.split(":")[0].split(",")[0].strip("*"))
    if len(numbers := {n for counts in found.values() for n in counts}) == 1:
        return wrap(f"Every method had {NUMBERS[numbers.pop()]} class orders.")
    parts = []
    for dataset, counts in found.items():
        whose = ["all"] if len(counts) == 1 else map(join_words, counts.values())
        said = sorted(zip(counts, whose, strict=True), reverse=True)
        parts.append(f"on {dataset_title(dataset)} " + "; ".join(f"{methods} {NUMBERS[n]}" for n, methods in said))
    return wrap(f"Class orders: {', '.join(parts)}.")


def all_data(rows, logistic):
    """What having all data at once is worth in the end, beside whitened prototypes."""
    sentences = []
    for dataset in DATASETS:
        ours, joint = (short_number(ended(row_of(rows, dataset, method))) for method in ("whitened", "joint"))
        alone = short_number(logistic[dataset]["accuracy"])
        sentences.append(
            f"On {dataset_title(dataset)} a logistic regression with all data at once ends at {alone}, joint training "
            f"at {joint}, whitened prototypes, one class at a time, at {ours}."
        )
    return wrap(" ".join(sentences))


def above(rows):
    """Who beats whitened prototypes, by how much, and what it keeps; who is told the task does not compete."""
    sentences = []
    for dataset in DATASETS:
        ours = row_of(rows, dataset, "whitened")
        others = [row for row in rows if row.record["dataset"] == dataset and row.features == FEATURES]
        rivals = [row for row in others if row.method in METHODS and not row.variant and not row.about.told_the_task]
        better = sorted((row for row in rivals if beats(row, ours)), key=lambda row: -accuracy(row))
        said = []
        for row in better:
            gap = interval(paired(row.record, ours.record, "alpha_all"))
            said.append(f"{row.title} ({gap}; {kept_mb(row)} MB instead of {kept_mb(ours)})")
        sentences.append(f"on {dataset_title(dataset)} by {join_words(said) or 'none'}")
    return wrap(f"Whitened prototypes are beaten, on the way, {'; '.join(sentences)}.")


def reached(rows):
    """What docs/method.md says of whitened prototypes beside MAS."""
    sentences = []
    for dataset in DATASETS:
        ours, theirs = (
            ", ".join(short_number(summarise(row_of(rows, dataset, method).record, field).mean) for field in ALPHAS)
            for method in ("whitened", "mas")
        )
        sentences.append(f"{ours} on {dataset_title(dataset)} (MAS: {theirs})")
    text = f"Mean accuracy over the increments on base, new and all classes is {join_words(sentences)}."
    joined = [accuracy(row_of(rows, dataset, "whitened", "resnet50:joined:mirror")) for dataset in DATASETS]
    text += " With the layers of two depths joined and mirrored pictures averaged in, all classes reach "
    text += f"{join_words([short_number(n) for n in joined])}."
    vgg = next((row for row in rows if row.method == "whitened-encoder" and not row.variant), None)
    plain = vgg and find(rows, vgg, "mas")
    if plain:
        text += f" On {vgg.features}, the paper's own code, *joined and whitened*, goes from "
        text += f"{short_number(accuracy(plain))} to {short_number(accuracy(vgg))}."
    return wrap(text)

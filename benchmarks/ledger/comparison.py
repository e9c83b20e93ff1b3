"""Every method beside every other: accuracies, intervals, differences, α_ideal, and what one class more costs."""

from engram.bench import published
from engram.bench.results import dataset_title, features_title, told_title
from engram.bench.schema import PSI
from engram.bench.statistics import ALPHAS, paired, summarise
from engram.bench.tables import markdown
from engram.bench.units import join_words, short_number, wrap
from ledger.claims import find, interval

LOGISTIC = "logistic regression, all data at once"
WHITENED, MAS = "whitened", "mas"


def compare(rows, dataset, logistic):
    """Accuracies averaged over the increments and the class orders, and what is kept; the best at the end first."""
    rows = [row for row in rows if row.record["dataset"] == dataset and not row.variant]
    final = {id(row): summarise(row.record, "final_accuracy").mean for row in rows}
    rows.sort(key=lambda row: (row.features, -final[id(row)]))
    lines = []
    for row in rows:
        means = [summarise(row.record, field).mean for field in ALPHAS]
        psi = [summarise(row.record, field).mean for field in PSI]
        orders = summarise(row.record, "psi_all").orders
        numbers = [f"{n:.3f}" for n in (*means, final[id(row)], *psi)]
        lines.append([row.features, row.title, *numbers, kept_mb(row), str(orders)])
    features = features_title(logistic["backbone"])
    at = next(i for i, line in enumerate(lines) if line[0] == features)
    lines.insert(at, [features, LOGISTIC, "", "", "", f"{logistic['accuracy']:.3f}", "", "", "", "", ""])
    head = ["features", "method", "base", "new", "all", "final", *PSI.values(), "kept, MB", "orders"]
    return markdown(head, lines)


def differences(rows, dataset):
    """All classes, with 95 % intervals, and how far every method is from whitened prototypes and from MAS."""
    lines = []
    for row in rows:
        if row.record["dataset"] != dataset or row.variant:
            continue
        alone = summarise(row.record, "alpha_all")
        ends = f"{alone.mean:.3f} ± {alone.half:.3f}" if alone.orders > 1 else f"{alone.mean:.3f}"
        line = [row.features, row.title, ends]
        for method in (WHITENED, MAS):
            other = find(rows, row, method)
            gap = paired(row.record, other.record, "alpha_all") if other and other is not row else None
            mark = "" if gap is None or gap.excludes_zero else " (undecided)"
            line.append(f"{interval(gap)}{mark}" if gap else None)
        lines.append(line)
    lines.sort(key=lambda line: (line[0], -float(line[2].split(" ")[0])))
    return markdown(["features", "method", "all classes", "less whitened", "less MAS"], lines)


def ideals(rows):
    """α_ideal on every feature set with its spread, and who passes it."""
    sets = {}
    for row in rows:
        sets.setdefault((row.record["dataset"], row.features), []).append(row)
    lines, passed = [], {}
    for (dataset, features), members in sets.items():
        for ideal in {row.record["alpha_ideal"]["accuracy"]: row.record["alpha_ideal"] for row in members}.values():
            std = f"± {ideal['std']:.3f}" if ideal.get("std") is not None else "one seed"
            lines.append([dataset_title(dataset), features, f"{ideal['accuracy']:.3f}", std, published.IDEAL[dataset]])
        over = [row for row in members if passes(row)]
        if over:
            passed[f"{dataset_title(dataset)}, {features}"] = over
    table = markdown(["data", "features", "α_ideal", "spread over seeds", "in the paper"], [map(str, n) for n in lines])
    if not passed:
        return f"{table}\n\nNo method passes it."
    sentences = [
        f"On {where}, {join_words([f'{row.title} ({short_number(ended(row))})' for row in over])} "
        f"{'ends' if len(over) == 1 else 'end'} above it."
        for where, over in passed.items()
    ]
    return table + "\n\n" + wrap(f"**It is no ceiling.** {' '.join(sentences)}")


def passes(row):
    """Whether it ends above the offline network; who is told the task does not compete, a variant is not asked."""
    return not row.about.told_the_task and not row.variant and ended(row) > row.record["alpha_ideal"]["accuracy"]


def ended(row):
    return summarise(row.record, "final_accuracy").mean


def kept_mb(row):
    """What is kept at the end, of all kinds, and the most on the way: FearNet's sleeps empty its memory of samples."""
    kept = row.courses("kept_bytes")[0]
    end, peak = (f"{size / 1e6:.1f}" for size in (kept[-1], max(kept)))
    return end if end == peak else f"{end} (peak {peak})"


def increments(dataset, content):
    """What benchmarks/increments.py measured, one line per method."""
    methods = {}
    for line in content["rows"]:
        methods.setdefault(line["name"].split(": ")[0], []).append(line["value"])
    name = f"results/increments/{dataset}.json"
    about = f"[{name}](../{name}): {content['device']}, torch {content['torch']}."
    head = ["method", "early class, ms", "late class, ms", "late / early", "kept early, MB", "kept late, MB"]
    lines = []
    for method, (early, late, ratio, few, many) in methods.items():
        # Until FearNet as published had a preset, the only one was ours.
        known = "fearnet-head" if method == "fearnet" and "fearnet-head" not in methods else method
        seconds = [f"{early * 1e3:.3g}", f"{late * 1e3:.3g}", f"{ratio:.2f}"]
        lines.append([told_title(known), *seconds, f"{few:.4g}", f"{many:.4g}"])
    return f"{about}\n\n{markdown(head, lines)}"

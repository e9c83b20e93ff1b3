"""The first table: what of the paper is reproduced, by either α_ideal."""

from engram.bench import published
from engram.bench.results import IDEALS, count_verdicts, dataset_title
from engram.bench.schema import PSI
from engram.bench.tables import markdown
from engram.bench.units import join_words, short_number

# What is not measured but known of features, and of those that could not be had.
KNOWN = {
    ("cifar100", "vgg19:conv4_1"): "The paper's network; the weights are Oxford's, with one layer rescaled.",
    ("cifar100", "vgg16:conv4_1"): "The paper used VGG-19.",
    ("cifar100", "resnet50:pooled"): "The paper has its own rows on VGG-19 alone; those numbers stand beside.",
    ("cub200", "resnet50:pooled"): "The paper has its own rows on VGG-19's fc1 alone; those numbers stand beside.",
}
NOT_HAD = ("cub200", "vgg19:fc1")
NOT_RUN = "Not run: those weights are not to be had here."
HEAD = ["data and features", "configuration", "by our α_ideal", "by the paper's constant", "in a sentence"]


def verdict_table(rows):
    """A line per configuration and feature set, each set under its total; then what was not run."""
    sets = {}
    for row in rows:
        if row.published:
            own = row.method in published.OWN
            sets.setdefault((not own, row.record["dataset"], row.features), []).append(row)
    lines = []
    for (quoted, dataset, features), members in sorted(sets.items(), key=lambda one: place(*one[0])):
        where = f"{dataset_title(dataset)}, {features}"
        whose = "quoted systems" if quoted else "the paper's method"
        about = "" if quoted else KNOWN.get((dataset, features), "")
        ideals = sorted({short_number(row.record["alpha_ideal"]["accuracy"]) for row in members})
        about += f" α_ideal is {join_words(ideals)} here, {short_number(published.IDEAL[dataset])} in the paper."
        lines.append([f"**{where}**", f"**{whose}**", *(f"**{one}**" for one in counts(members)), about.strip()])
        for row in members:
            lines.append([where, row.title, *counts([row]), describe(row)])
    if not any((row.record["dataset"], row.features) == NOT_HAD for row in rows):
        lines.append(["**CUB-200 on VGG-19 fc1**", "the paper's method", "–", "–", NOT_RUN])
    return markdown(HEAD, lines)


def place(quoted, dataset, features):
    """The paper's own method first, and its own network first."""
    known = list(KNOWN)
    where = dataset, features
    return quoted, dataset, known.index(where) if where in known else len(known), features


def counts(rows):
    """How many are reproduced, by either α_ideal."""
    return [count_verdicts(verdict for row in rows for verdict in row.verdicts(ideal)) for ideal in IDEALS]


def describe(row):
    """What is near the published numbers and what is not, by our α_ideal."""
    found = {"near": [], "higher": [], "lower": []}
    for (field, symbol), verdict, theirs in zip(PSI.items(), row.verdicts("ours"), row.published, strict=True):
        gap = short_number(abs(row.record[field]["mean"] - theirs))
        words = symbol if verdict == "reproduced" else f"{symbol} by {gap}"
        found["near" if verdict == "reproduced" else verdict].append(words)
    parts = [f"{join_words(words)} {word}" for word, words in found.items() if words]
    return "; ".join(parts) + "."

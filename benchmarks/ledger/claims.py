"""What the paper claims, judged by rules that are written beside the verdicts."""

from collections import Counter
from dataclasses import dataclass, field

from engram.bench.published import OWN
from engram.bench.results import dataset_title, method_title
from engram.bench.statistics import ALPHAS, paired, summarise
from engram.bench.tables import markdown, samples_gone
from engram.bench.units import join_words, short_number, size, wrap

SLIGHTLY = 0.05  # of accuracy
FAR_LESS = 0.5  # of FearNet's bytes; the paper's own figures are .24 at 100 classes and .46 at 1,000
FLAT = 1.1  # a late class may take so many times the seconds of an early one
COUNTED = {
    "as_the_paper_counts": "as the paper counts it",
    "all_the_next_increment_needs": "all counted that the next increment needs, FearNet at its peak",
}
MEASURES = ALPHAS | {"final_accuracy": "after the last class"}
TIMED = "resnet50:pooled"  # the features of benchmarks/increments.py
SIMPLE = ("ncm", "slda", "fecam", "ranpac", "whitened")


@dataclass
class Claim:
    """A sentence of the paper's, the rule that decides it, and what was found: where, what, a number, what it says."""

    text: str
    rule: str
    found: list[tuple[str, str, str, str]] = field(default_factory=list)

    def add(self, row, what, number, says):
        self.found.append((f"{dataset_title(row.record['dataset'])}, {row.features}", what, number, says))

    def add_difference(self, row, other, measure, judge):
        """`row` less `other`, order by order, if both are there."""
        gap = row and other and paired(row.record, other.record, measure)
        if gap:
            self.add(row, f"{row.title} less {other.title}, {MEASURES[measure]}", interval(gap), judge(gap))

    @property
    def verdict(self):
        if not self.found:
            return "not yet measured"
        said = Counter(says for *_, says in self.found)
        rest = "".join(f", {n} {word}" for word, n in said.most_common() if word != "holds")
        if said["holds"]:
            word = "holds in part" if rest else "holds"
        else:
            word = "undecided" if said["undecided"] == said.total() else "does not hold"
        return f"**{word}**: {said['holds']} of {said.total()}{rest}"


def interval(gap):
    """A difference and its 95 % interval; of one class order there is none."""
    mean = f"{'+' if round(gap.mean, 3) >= 0 else ''}{short_number(gap.mean)}"
    return f"{mean} [{short_number(gap.low)}, {short_number(gap.high)}]" if gap.orders > 1 else f"{mean} (one order)"


def slightly_lower(gap):
    if not gap.excludes_zero:
        return "undecided"
    return "the opposite" if gap.mean > 0 else "holds" if gap.mean >= -SLIGHTLY else "far lower"


def higher(gap):
    return "undecided" if not gap.excludes_zero else "holds" if gap.mean > 0 else "the opposite"


def comparable(gap):
    return "holds" if abs(gap.mean) <= SLIGHTLY else "far higher" if gap.mean > 0 else "far lower"


def find(rows, like, method, variant=""):
    """The row of another method on the data and features of one."""
    where = like.record["dataset"], like.features
    for row in rows:
        if (row.record["dataset"], row.features, row.method, row.variant) == (*where, method, variant):
            return row
    return None


def judge_claims(rows, ablations, increments):
    """Every claim with what was found. `increments` has late / early seconds by data set and method."""
    own = [row for row in rows if row.method in OWN and not row.variant]
    near, clear = f"within {SLIGHTLY}", "and the interval leaves out zero"
    lof = Claim("LOF slightly decreases Ψ_base and Ψ_all", f"lower with LOF, but {near}, {clear}")
    icarl = Claim("Better than iCaRL", f"higher on all classes, {clear}")
    nearest = Claim("Slightly worse than 1-NN", f"lower on all classes, but {near}, {clear}")
    fearnet = {
        "alpha_all": Claim("Comparable to FearNet", f"{near} on all classes, either way"),
        "final_accuracy": Claim("… after the last class, too", f"{near}, either way"),
    }
    memory = {
        flavour: Claim(f"… with far less memory, {title}", f"at most {FAR_LESS} of FearNet's bytes at 100 classes")
        for flavour, title in COUNTED.items()
    }
    seconds = Claim(
        "Constant cost per class, in seconds",
        f"a late class takes at most {FLAT} times as long as an early one, with the GPU to itself",
    )
    room = Claim("… and in bytes", "a late class adds as many bytes as an early one")
    for row in own:
        if row.method.endswith("-lof"):
            for measure in ("alpha_base", "alpha_all"):
                lof.add_difference(row, find(rows, row, row.method.removesuffix("-lof")), measure, slightly_lower)
        icarl.add_difference(row, find(rows, row, "icarl"), "alpha_all", higher)
        nearest.add_difference(row, find(rows, row, "1nn"), "alpha_all", slightly_lower)
        theirs = find(rows, row, "fearnet")
        for measure, claim in fearnet.items():
            claim.add_difference(row, theirs, measure, comparable)
        for flavour, claim in memory.items():
            add_memory(claim, row, theirs, flavour)
        add_seconds(seconds, row, increments)
        add_bytes(room, row)
    l1 = Claim("L1 helps", f"as published less without L_L1: higher on all classes, {clear}")
    alone = Claim("LOF alone is not enough", f"LOF + L_add less LOF alone: higher on all classes, {clear}")
    for claim, more, less in ((l1, "as published", "without L_L1"), (alone, "LOF + L_add", "LOF alone")):
        for row in (row for row in ablations if row.variant == less):
            claim.add_difference(find(ablations, row, row.method, more), row, "alpha_all", higher)
    return [lof, icarl, nearest, *fearnet.values(), *memory.values(), seconds, room, l1, alone]


def add_memory(claim, row, theirs, flavour):
    ours, other = (each.memory(flavour).get(100) if each else None for each in (row, theirs))
    if ours and other:
        other += samples_gone(theirs) if flavour == "all_the_next_increment_needs" else 0
        says = "holds" if ours <= FAR_LESS * other else "more" if ours > other else "not far less"
        claim.add(row, f"{row.title} and {theirs.title}", f"{size(ours)} and {size(other)}", says)


def add_seconds(claim, row, increments):
    ratio = increments.get((row.record["dataset"], row.method))
    if ratio and row.features == TIMED:
        claim.add(row, f"{row.title}, late / early", f"{ratio:.2f}", "holds" if ratio <= FLAT else "grows")


def add_bytes(claim, row):
    kept, seen = row.courses("kept_bytes")[0], row.classes_seen
    middle = len(seen) // 2
    early, late = ((kept[to] - kept[at]) / (seen[to] - seen[at]) for at, to in ((0, middle), (middle, len(seen) - 1)))
    says = "holds" if abs(late - early) <= 1 else "grows"
    claim.add(row, f"{row.title}, bytes per class, early and late", f"{early:,.0f} and {late:,.0f}", says)


def claim_table(claims):
    return markdown(["the paper says", "it holds where", "verdict"], [[c.text, c.rule, c.verdict] for c in claims])


def evidence_table(claims):
    """Every comparison a claim's verdict rests on."""
    head = ["claim", "data and features", "compared", "found", "says"]
    return markdown(head, [[claim.text, *line] for claim in claims for line in claim.found])


def late_by_early(contents):
    """Late / early seconds by data set and method, of what benchmarks/increments.py wrote."""
    found = {}
    for dataset, content in contents.items():
        for line in content["rows"]:
            method, _, what = line["name"].partition(": ")
            if what == "late / early":
                found[dataset, method] = line["value"]
    return found


def simple_statistics(rows):
    """Which statistics of the features beat the paper's method on the same ones: a sentence for each data set."""
    own = [row for row in rows if row.method in OWN and not row.variant]
    sentences = []
    for like in {(row.record["dataset"], row.features): row for row in own}.values():
        ours = sorted(filter(None, (find(own, like, method) for method in OWN)), key=lambda row: -accuracy(row))
        simple = sorted(filter(None, (find(rows, like, name) for name in SIMPLE)), key=lambda row: -accuracy(row))
        if not simple:
            continue
        beat = [row for row in simple if all(beats(row, other) for other in ours)]
        sentence = f"{dataset_title(like.record['dataset'])}, {like.features}: "
        sentence += f"{listed(beat) or 'none'} beat{'s' if len(beat) < 2 else ''} all four configurations"
        sentence += f", whose best is {listed(ours[:1])}"
        if rest := [row for row in simple if row not in beat]:
            sentence += f"; {listed(rest)} {'does' if len(rest) == 1 else 'do'} not"
        sentences.append(wrap(f"- {sentence}.", "  "))
    return "\n".join(sentences)


def beats(row, other):
    gap = paired(row.record, other.record, "alpha_all")
    return gap is not None and gap.excludes_zero and gap.mean > 0


def accuracy(row):
    return summarise(row.record, "alpha_all").mean


def listed(rows):
    return join_words([f"{method_title(row.method)} ({short_number(accuracy(row))})" for row in rows])

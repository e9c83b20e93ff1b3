"""One paragraph and one table for every results file."""

from engram.bench import published
from engram.bench.results import IDEALS, judge
from engram.bench.schema import PSI
from engram.bench.statistics import over_orders, summarise
from engram.bench.tables import markdown
from ledger.records import identity

HASHES = {"features_sha256": "features", "weights_sha256": "weights"}


def detail(name, content, rows):
    """How a file was made, and its numbers; `rows` are those of it that no later run has replaced."""
    run = content["run"]
    ideals = sorted({f"{record['alpha_ideal']['accuracy']:.3f}" for record in content["records"]})
    constant = published.IDEAL[content["records"][0]["dataset"]]
    made = [run["device"], f"torch {run['torch']}", f"revision {(run['git_revision'] or 'unknown')[:7]}"]
    made += [f"{word} {run[key][:8]}" for key, word in HASHES.items() if run.get(key)]
    made += [f"[environment](../results/{run['environment']})"] if run.get("environment") else []
    made += [f"α_ideal measured {', '.join(ideals)}", f"the paper's {constant}"]
    parts = [f"`{run['command']}`  \n[results/{name}.json](../results/{name}.json): {', '.join(made)}."]
    replaced = len(content["records"]) - len(rows)
    if replaced:
        parts.append(f"Left out: {replaced} of its {len(content['records'])} rows, which a later file has again.")
    judged = [row for row in rows if row.published]
    if judged:
        head = ["configuration", "number", "paper", "ours", "verdict", "ours, paper's α_ideal", "verdict"]
        parts += [judge(judged), markdown(head, [line for row in judged for line in judged_lines(row)])]
    others = [row for row in rows if not row.published]
    if others:
        fields = [*PSI, "final_accuracy"]
        lines = [[row.title, *(spread(summarise(row.record, field)) for field in fields)] for row in others]
        parts.append(markdown(["not in the paper", *PSI.values(), "final accuracy"], lines))
    return "\n\n".join(parts)


def judged_lines(row):
    """A line for each published number: ours by either α_ideal, with the verdicts."""
    lines = []
    for i, (field, symbol) in enumerate(PSI.items()):
        theirs = row.published[i]
        line = [row.title, symbol, f"{theirs:.3f}"]
        for ideal in IDEALS:
            ours = over_orders(row.ideals[ideal][field]["values"], row.record["orders"])
            line += [spread(ours), row.verdicts(ideal)[i]]
        lines.append(line)
    return lines


def spread(found):
    return f"{found.mean:.3f} ± {found.std:.3f}" if found.orders > 1 else f"{found.mean:.3f}"


def details(contents, rows):
    """Every file, the first one started first."""
    current = {identity(row.record): row for row in rows}
    parts = []
    for name, content in contents.items():
        own = [current[identity(record)] for record in content["records"]]
        own = [row for row, record in zip(own, content["records"], strict=True) if row.record is record]
        parts.append(f"### {name}\n\n{detail(name, content, own)}")
    return "\n\n".join(parts)

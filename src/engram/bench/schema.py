"""What a results file of `engram bench` has to hold, of this version and of earlier ones."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

PSI = {"psi_base": "Ψ_base", "psi_new": "Ψ_new", "psi_all": "Ψ_all"}

# What a report cannot do without. A type is one of its instances, a list holds any number of its one item; what a name
# with a question mark stands for may be left out, but not misread.
_NUMBER = (int, float)
_SPREAD = {"mean": _NUMBER, "values": [_NUMBER]}
_TASK = {"classes_seen": int, "alpha_base": _NUMBER, "alpha_new": _NUMBER, "alpha_all": _NUMBER, "seconds": _NUMBER}
_RECORD = {
    "dataset": str,
    "backbone": str,
    "method": str,
    "protocol": {"base": int, "step": int, "classes": int},
    "alpha_ideal": {"accuracy": _NUMBER},
    **dict.fromkeys(PSI, _SPREAD),
    "orders": [{"seed": int, "init?": int, "classes": list, "tasks": [_TASK]}],
    "name?": str,
    "paper_ideal?": {"alpha_ideal": _NUMBER, **dict.fromkeys(PSI, _SPREAD)},
    "average_incremental_accuracy?": _SPREAD,
    "final_accuracy?": _SPREAD,
    "forgetting?": _SPREAD,
    "confusion?": {"labels": list, "counts": [[_NUMBER]]},
    "memory?": {"as_the_paper_counts": dict, "all_the_next_increment_needs": dict},
}
_RESULTS = {"format": int, "run": dict, "records": [_RECORD]}


def find_problem(content: Any) -> str | None:
    """The first thing in which a file's content is not what it should be."""
    return next(_problems(content, _RESULTS, ""), None)


def _problems(value: Any, shape: Any, where: str) -> Iterator[str]:
    if isinstance(shape, dict):
        if not isinstance(value, Mapping):
            yield f"{where or 'the file'} is not an object"
            return
        for key, inner in shape.items():
            key, optional = key.removesuffix("?"), key.endswith("?")
            name = f"{where}.{key}" if where else key
            if optional and value.get(key) is None:
                continue
            if key not in value:
                yield f"{name} is missing"
            else:
                yield from _problems(value[key], inner, name)
    elif isinstance(shape, list):
        if not isinstance(value, list):
            yield f"{where} is not a list"
        elif not value:
            yield f"{where} is empty"
        else:
            for i, item in enumerate(value):
                yield from _problems(item, shape[0], f"{where}[{i}]")
    elif not isinstance(value, shape):
        yield f"{where} is {json.dumps(value, default=str)[:40]}"

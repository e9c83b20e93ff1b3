"""A model in words, for those it is given to: a model card, as Hugging Face shows it."""

from typing import Any

from engram.model import Model
from engram.store.health import Health, examine
from engram.store.model_store import ModelStore

_CHECKED = "The bytes above are all there are: engram doctor MODEL compares every one with its checksum"
_NO_SAMPLES = (
    "Not stored: no picture, no feature vector of a picture, no file name. Of each class there is its name, {kept}, "
    "when it was learned, how many of its pictures were taken for which class then, and a checksum to recognise its "
    "folder by. {checked}, and the test suite walks every object reachable from a learner and finds no training sample "
    "among them (check_learner)."
)
_SAMPLES = (
    "This method stores feature vectors of training pictures: {kept}. Not stored: no picture, no file name. {checked}."
)

_CARD = """\
---
library_name: engram
pipeline_tag: image-classification
tags:
- image-classification
- continual-learning
- class-incremental-learning
---

# {title}

<!-- Say here what the pictures show, where they come from, and under which licence you give this model away. -->

A model of engram: it says which of {count} classes a picture shows, and can be taught more.

    pip install engram-learn
    engram predict {file} PICTURE

| | |
|---|---|
| method | `{method}` |
| backbone, frozen | {backbone} |
| file | {megabytes:.1f} MB, of which {per_class:,} bytes per class |
| learned | {learned} |

## Classes

| class | pictures | right | taken for |
|---|---:|---:|---|
{classes}
{built_in}
## How good it is

{accuracy}

## What it keeps

{kept}

## Limits

- It answers with one of these classes whatever a picture shows. {unknown}
- {probability}
- It knows pictures like those it was taught. Other cameras, seasons and places are worth a test of their own:
  `engram evaluate {file} FOLDER`.
"""
_ACCURACY = (
    "{accuracy:.1%} right, as the mean over classes: each picture it was taught was judged as if it had not been. "
    "What later classes took from earlier ones is an estimate."
)
_BUILT_IN = """
And {classes:,} classes of ImageNet, which came with the backbone: nobody taught them, and nothing was measured on them.
Licences: {licence}.
"""
_NOT_MEASURED = "Not known: the file does not tell about every class. Measure it with `engram evaluate`."
_UNKNOWN = (
    "`--unknown auto` answers *unknown* where it looks like none of them, and refuses about {share:.0%} of pictures of "
    "known classes too; among things that are alike, it misses many."
)
_NO_UNKNOWN = "This file holds no rule that would tell when it shows none of them."


def tell_what_is_kept(about: dict[str, Any]) -> str:
    """What a model, as `ModelStore.info` describes it, has of the pictures it was taught, and what it has not."""
    text = _SAMPLES if about["keeps_samples"] else _NO_SAMPLES
    return text.format(kept=about["kept_per_class"], checked=_CHECKED)


def model_card(store: ModelStore, model: Model | None = None) -> str:
    """The card of a model, in Markdown with Hugging Face's front matter; `model` if it has been read already."""
    model = model or store.read()
    about, health = store.info(model), examine(model)
    accuracy, unknown, built_in = health.overall(), about["unknown"], about["built_in"]
    dates = sorted(event.when[:10] for event in model.notes.history)
    return _CARD.format(
        title=_plain(store.path.stem),
        file=store.path.name,
        count=len(about["classes"]) + (built_in["classes"] if built_in else 0),
        built_in=_BUILT_IN.format(**built_in) if built_in else "",
        method=about["method"],
        backbone=f"`{about['backbone']}`" if about["backbone"] else "none; it takes feature vectors",
        megabytes=about["bytes"] / 1e6,
        per_class=about["bytes_per_class"],
        learned="unknown" if not dates else dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}",
        classes="\n".join(_row(one, health) for one in about["classes"]),
        accuracy=_NOT_MEASURED if accuracy is None else _ACCURACY.format(accuracy=accuracy),
        kept=tell_what_is_kept(about),
        unknown=_UNKNOWN.format(share=unknown["share"]) if unknown else _NO_UNKNOWN,
        probability=(
            "Its probabilities are calibrated for pictures of these classes, and mean nothing for others."
            if about["can_leave_out"]
            else "Its probabilities are an order of preference: 80 % does not mean right in four of five cases."
        ),
    )


def _row(one: dict[str, Any], health: Health) -> str:
    told = health.classes[one["name"]]
    right, taken = (f"{told.share:.0%}", ", ".join(list(told.taken_for)[:2])) if told else ("", "")
    pictures = "" if one["pictures"] is None else f"{one['pictures']:,}"
    return f"| {_plain(one['name'])} | {pictures} | {right} | {_plain(taken)} |"


def _plain(name: str) -> str:
    """A name that Markdown shows as it is."""
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]<>#|~" else letter for letter in name)

"""Options that belong together, as one dataclass: a command takes the dataclass, its users see the options."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engram.cli.app import note
from engram.cli.options import Device

if TYPE_CHECKING:
    from engram.bench.inputs import Inputs


def expand(command: Callable[..., None]) -> Callable[..., None]:
    """Let every field of a parameter that is a dataclass be an argument or option of its own."""
    own = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {p.name: p.annotation for p in own.parameters.values() if is_dataclass(p.annotation)}

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    parameters: list[inspect.Parameter] = []
    for parameter in own.parameters.values():
        group = groups.get(parameter.name)
        parameters += inspect.signature(group, eval_str=True).parameters.values() if group else [parameter]
    by_name = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    run.__signature__ = own.replace(parameters=by_name)  # type: ignore[attr-defined]
    return run


@dataclass(frozen=True)
class Source:
    """A data set, and the network that turns its images into features."""

    dataset: Annotated[str, typer.Argument(help="cifar100, cub200, digits or folder.")]
    data: Annotated[Path | None, typer.Option(help="Where the data set lies (default: $ENGRAM_DATA).")] = None
    backbone: Annotated[str, typer.Option(help="efficientnet_lite0, vgg16, vgg19, resnet50 or timm:NAME.")] = (
        "efficientnet_lite0"
    )
    weights: Annotated[Path | None, typer.Option(help="Weights file (default: $ENGRAM_WEIGHTS, then a download).")] = (
        None
    )
    cache: Annotated[Path | None, typer.Option(help="Feature cache (default: $ENGRAM_CACHE).")] = None
    device: Device = "auto"

    def load(self, **more: Any) -> "Inputs":
        """The features, from the cache or computed."""
        from engram.bench.inputs import load_features

        network: Any = {"backbone": self.backbone, "weights": self.weights, "cache": self.cache, "device": self.device}
        return load_features(self.dataset, self.data, **network, **more)


def note_missing_pictures() -> None:
    """Say that nothing was drawn, and how to have it drawn, where matplotlib is missing."""
    from engram.bench.drawing import can_draw

    if not can_draw():
        note("no picture was drawn: that needs matplotlib; install it with: pip install 'engram-learn[plot]'")

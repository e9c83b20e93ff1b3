"""Arguments and options that several commands have."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engram.cli.app import note
from engram.errors import ModelFileError

if TYPE_CHECKING:
    from engram.store import ModelStore


def require_readable(path: Path | None) -> Path | None:
    """Before anything slow is imported for a file that is not there."""
    if path is not None:
        try:
            if path.is_fifo():  # opening it would wait for somebody to write into it
                raise ModelFileError(f"cannot read {path}: it is no file, but a pipe or a device")
            path.open("rb").close()
        except OSError as error:
            raise ModelFileError(f"cannot read {path}: {error.strerror}") from error
    return path


ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="The model file.", show_default=False)]
ExistingModel = Annotated[
    Path, typer.Argument(metavar="MODEL", help="The model file.", show_default=False, callback=require_readable)
]
OptionalModel = Annotated[
    Path | None,
    typer.Argument(metavar="[MODEL]", help="A model file to check.", show_default=False, callback=require_readable),
]
Folder = Annotated[
    Path,
    typer.Argument(
        metavar="FOLDER|LIST",
        help="Holds one folder of pictures per class; or a list: a CSV or TSV file with the columns path and label, "
        "or lines of paths that end in CLASS/PICTURE.",
        show_default=False,
    ),
]


def _limit_pixels(most: int | None) -> int | None:
    if most is not None:
        from PIL import Image

        Image.MAX_IMAGE_PIXELS = most
    return most


MaxPixels = Annotated[
    int | None,
    typer.Option(
        min=1,
        callback=_limit_pixels,
        help="Pictures with more pixels are refused, or read at reduced size if they are JPEG (default: 89 million).",
    ),
]
DetectionsFile = Annotated[
    Path | None,
    typer.Option("--detections", metavar="FILE", help="Boxes of animals in the pictures: MegaDetector's JSON."),
]
DetectionThreshold = Annotated[
    float | None,
    typer.Option(help="With --detections: how sure a box has to be.", show_default="what FILE calls typical, or 0.2"),
]
ImagesFolder = Annotated[
    Path | None,
    typer.Option(
        "--images",
        metavar="FOLDER",
        help="With --detections: what its file names are relative to (default: the folder that FILE is in).",
    ),
]


def _allow_download(allowed: bool) -> bool:
    if allowed:
        from engram.encoders.recorded import ALLOW_DOWNLOAD

        os.environ[ALLOW_DOWNLOAD] = "1"  # for the processes that the page starts, too
    return allowed


AllowDownload = Annotated[
    bool,
    typer.Option(
        "--allow-download",
        callback=_allow_download,
        help="Fetch the backbone that the model file names, if it is not here; without it, nothing is fetched.",
    ),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Go on without the rows of a LIST that cannot be used; they are named.")
]
Backbone = Annotated[
    str | None,
    typer.Option(
        help="For a new model: the network that sees the pictures. efficientnet_lite0, resnet50 (either may end in "
        ":joined), efficientnet_lite1, efficientnet_lite2, vgg16, vgg19, timm:NAME; :mirror behind any of them.",
        show_default="efficientnet_lite0, joined for whitened and slda",
    ),
]
Method = Annotated[str | None, typer.Option(help="For a new model: how it learns; see engram methods.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="For a new model: change a setting of the method; engram methods lists them.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, directml or coreml; engram doctor lists what is here.")]
Wait = Annotated[float, typer.Option(min=0, help="Seconds to wait for another process that is changing the model.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

MAIN, CARE, RESEARCH = "Learn and look", "Take care of a model", "Data sets and experiments"


def open_store(model: Path, device: str = "cpu", wait: float = 60.0) -> "ModelStore":
    """The model file; a person is told which process is changing it, if one is."""
    from engram.store import ModelStore

    return ModelStore(model, device=device, wait=wait, waiting=lambda holder: note(f"waiting for {holder}"))


def percent(share: float) -> str:
    """A share for people."""
    return f"{100 * share:.0f} %"


def megabytes(count: int) -> str:
    """A size for people."""
    return f"{count / 1e6:,.1f} MB" if count >= 100_000 else f"{count / 1e3:,.1f} kB"

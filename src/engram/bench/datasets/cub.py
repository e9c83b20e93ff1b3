"""CUB-200-2011 in its official layout."""

from pathlib import Path

from engram.bench.datasets.download import Archive, Progress, obtain
from engram.datasets.dataset import DataError, Dataset, Split, data_root

CUB200 = Archive(
    url="https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",
    md5="97eceeb196236b17998738112f37df78",
    folder="CUB_200_2011",
)


def cub200(root: str | Path | None = None, *, download: bool = False, progress: Progress | None = None) -> Dataset:
    """Read `root`/CUB_200_2011 through its index files: 5,994 + 5,794 photographs of 200 kinds of birds.

    `root` defaults to the folder named by ENGRAM_DATA. With `download` the archive is fetched first if need be.
    """
    folder = obtain(CUB200, data_root(root), download=download, progress=progress)
    names = _index(folder / "classes.txt")
    paths = _index(folder / "images.txt")
    class_of = _index(folder / "image_class_labels.txt")
    is_train = _index(folder / "train_test_split.txt")
    train: tuple[list[Path], list[str]] = ([], [])
    test: tuple[list[Path], list[str]] = ([], [])
    for number, path in paths.items():
        try:
            images, labels = train if is_train[number] == "1" else test
            labels.append(names[class_of[number]])
        except KeyError as error:
            raise DataError(f"{folder}: image {number} ({path}): the index files know no {error}") from None
        images.append(folder / "images" / path)
    return Dataset("cub200", Split(*train), Split(*test), list(names.values()))


def _index(path: Path) -> dict[str, str]:
    """Read lines of `number value`, in the file's order."""
    try:
        lines = path.read_text("utf-8").splitlines()
        return dict(line.split(maxsplit=1) for line in lines if line.strip())
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise DataError(f"{path} is not an index of lines 'number value'") from error

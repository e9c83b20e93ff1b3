"""Finished courses in one archive, so that a machine that has none of the work of before can go on from it."""

import tarfile
from pathlib import Path

from engram.files.atomic import replacing


def pack(archive: Path, work: Path, revision: str) -> None:
    """Write every finished course and α_ideal of a revision, and what is known of the features, atomically."""
    found = [path for name in ("course.json", "ideal.json") for path in (work / revision).rglob(name)]
    archive.parent.mkdir(parents=True, exist_ok=True)
    with replacing(archive) as temporary, tarfile.open(temporary, "w:gz") as tar:
        for path in sorted([*found, *(work / "features").glob("*.json")]):
            tar.add(path, path.relative_to(work))


def unpack(archive: Path, work: Path) -> None:
    """Put them where `benchmarks/reproduce.py` looks for them; without an archive there is nothing to do."""
    if archive.exists():
        with tarfile.open(archive) as tar:
            tar.extractall(work, filter="data")

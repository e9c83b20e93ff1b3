"""Previous versions of a model file, kept in a folder beside it.

Version n of MODEL lies at MODEL.versions/n.engram. It is the old file itself under a second name (a hard link), so that
keeping it costs no writing and undoing gives back what was there, byte for byte.
"""

import contextlib
import os
import shlex
import shutil
from pathlib import Path

from engram.errors import ModelFileError
from engram.files.atomic import own_like, sync_folder

_SUFFIX, _FOLDER = ".engram", ".versions"


class Versions:
    """The versions kept of one model file."""

    def __init__(self, model: Path) -> None:
        self.model = Path(os.path.realpath(model))
        self.folder = self.model.with_name(self.model.name + _FOLDER)

    def numbers(self) -> list[int]:
        """The versions kept, oldest first."""
        try:
            names = os.listdir(self.folder)
        except OSError:
            return []
        stems = [name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)]
        return sorted(int(stem) for stem in stems if stem.isascii() and stem.isdigit())

    def path(self, number: int) -> Path:
        """The file of a version."""
        return self.folder / f"{number}{_SUFFIX}"

    def bytes(self) -> int:
        """Their size on disk."""
        return sum(self.path(number).stat().st_size for number in self.numbers())

    def tell_left_behind(self, recorded: str) -> str:
        """Where versions lay when the model was changed last, if that is elsewhere and none is here, and how to come by
        them; "" if there is nothing to tell.
        """
        before = Path(recorded)
        name = before.name.removesuffix(_FOLDER)
        if name in ("", before.name) or before == self.folder or self.numbers():  # none recorded, or not by us
            return ""
        where = f"the model was moved: its previous versions were in {before}"
        if not os.path.isdir(before):  # unlike Path.is_dir, not an error where a forged file has an endless name
            return f"{where}, which is not on this machine or gone; what is left of it belongs to {self.folder}"
        copied = before.with_name(name).exists()
        bring = shlex.join([*(("cp", "-r") if copied else ("mv",)), str(before), str(self.folder)])
        return f"{where}; bring them with: {bring}"

    def keep(self, number: int) -> None:
        """Keep the model file, which is version `number`, under a second name. All or nothing."""
        kept, temporary = self.path(number), self.folder / f".{number}.tmp"
        try:
            self.folder.mkdir(exist_ok=True)
            own_like(self.folder, self.model)
            temporary.unlink(missing_ok=True)
            try:
                os.link(self.model, temporary)
            except OSError:  # a file system without links, or one that has none left
                shutil.copy(self.model, temporary)
                own_like(temporary, self.model)
                with temporary.open("rb") as written:
                    os.fsync(written.fileno())
            os.replace(temporary, kept)
            sync_folder(self.folder)
        except OSError as error:
            reason = error.strerror or error
            raise ModelFileError(f"cannot keep the present version as {kept}: {reason}; nothing was changed") from error
        finally:
            # A rename does nothing if both are names of one file: then the temporary one is still there.
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)

    def prune(self, present: int, keep: int) -> None:
        """Keep the last `keep` versions before `present`; remove older ones, and later ones, which were undone."""
        earlier = [number for number in self.numbers() if number < present]
        for number in set(self.numbers()) - set(earlier[-keep:] if keep else []):
            with contextlib.suppress(OSError):  # one version too many does no harm, and the next change tries again
                self.path(number).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # only if nothing is in it
            self.folder.rmdir()

    def restore(self, number: int) -> None:
        """Put a version in the model file's place, in one step."""
        os.replace(self.path(number), self.model)
        sync_folder(self.model.parent)
        with contextlib.suppress(OSError):
            self.folder.rmdir()

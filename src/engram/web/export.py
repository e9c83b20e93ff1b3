"""The model as an ONNX graph: one job for a version of the model, whoever and however many ask for it.

A process of its own makes it, python -m engram.web.export MODEL OUT, because torch's exporter would keep predictions
waiting. What went wrong is the last line on its stderr.
"""

import asyncio
import contextlib
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from engram import ModelFileError
from engram.store import ModelStore
from engram.web.limits import RefusedError
from engram.web.stamp import Stamp, file_stamp
from engram.web.worker import lower_priority


@dataclass(frozen=True)
class ExportState:
    """How far the export is: "running", "ready" or "failed"; `detail` says why it failed."""

    state: str
    seconds: int
    detail: str = ""


class Exports:
    """Makes the graph when it is first asked for, and keeps it until the model changes.

    A client that hangs up does not stop it: whoever asks next finds it further, or ready.
    """

    def __init__(self, model: Path) -> None:
        self._model = model
        self._stamp: Stamp | None = None  # of the model that `_job` is about
        self._job: asyncio.Task[bytes] | None = None
        self._began = self._ended = 0.0

    async def get(self) -> bytes:
        """The graph of the model as it is now."""
        wanted = file_stamp(self._model)
        while self._job is None or self._stamp != wanted or _failed(self._job):
            if self._job is not None and not self._job.done():  # of a version before; one at a time
                await asyncio.wait([self._job])
                wanted = file_stamp(self._model)
                continue
            self._stamp, self._began, self._ended = wanted, time.monotonic(), 0.0
            self._job = asyncio.create_task(self._make())
            self._job.add_done_callback(_failed)  # looks at the error, for the case that nobody waits any more
            break
        return await asyncio.shield(self._job)

    def state(self) -> ExportState | None:
        """How far it is; None if the model as it is now was not asked for. Forgets what is of a version before."""
        job = self._job
        if job is None:
            return None
        if not job.done():
            return ExportState("running", int(time.monotonic() - self._began))
        if self._stamp != file_stamp(self._model):
            self._job = None
            return None
        seconds = int(self._ended - self._began)
        return ExportState("failed", seconds, str(job.exception())) if _failed(job) else ExportState("ready", seconds)

    def close(self) -> None:
        """End the process; whoever waits for it is refused."""
        if self._job is not None:
            self._job.cancel()

    async def _make(self) -> bytes:
        try:
            with tempfile.TemporaryDirectory() as folder:
                return await _export(self._model.resolve(), Path(folder) / "model.onnx")
        except asyncio.CancelledError:
            raise RefusedError(503, "the server is ending") from None
        finally:
            self._ended = time.monotonic()


def _failed(job: asyncio.Task[bytes]) -> bool:
    return job.done() and (job.cancelled() or job.exception() is not None)


async def _export(model: Path, out: Path) -> bytes:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "engram.web.export", str(model), str(out),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        _, errors = await process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself
            process.kill()
    if process.returncode != 0:
        reason = errors.decode(errors="replace").strip().rpartition("\n")[2]
        raise RefusedError(409, f"it cannot be exported: {reason}")
    return out.read_bytes()


def main(model: str, out: str) -> None:
    """Export the model; exits with the reason if that fails."""
    lower_priority()
    try:
        read = ModelStore(model, device="cpu").read()
        read.clf.export(out, unknown_below=read.unknown_below())
    except (ModelFileError, OSError, RuntimeError, ValueError) as error:
        sys.exit(" ".join(str(error).split()))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The model as an ONNX graph, made once for a version of it, whoever and however many ask."""

import asyncio
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from engram.errors import ModelFileError
from engram.store.export import export_model
from engram.web.limits import RefusedError
from engram.web.predictor import Snapshot
from engram.web.stamp import Stamp


class Exports:
    """Makes the graph when it is first asked for, and keeps it until the model changes."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "engram-export")  # one at a time: what follows finds it made
        self._made: tuple[Stamp, bytes] | None = None

    async def get(self, snapshot: Snapshot) -> bytes:
        """The graph of a model."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._graph_of, snapshot)

    def _graph_of(self, snapshot: Snapshot) -> bytes:
        if self._made is None or self._made[0] != snapshot.stamp:
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder) / "model.onnx"
                try:
                    export_model(snapshot.model, out)
                except (ModelFileError, ValueError) as error:
                    raise RefusedError(409, f"it cannot be exported: {error}") from None
                self._made = snapshot.stamp, out.read_bytes()
        return self._made[1]

    def close(self) -> None:
        """Let the thread go."""
        self._thread.shutdown(wait=False, cancel_futures=True)

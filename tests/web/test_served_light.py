"""What a served process has loaded when everything was asked of it once."""

import sys
from pathlib import Path

import pytest
from conftest import ended, form
from drawings import draw, drawings

HEAVY = {"torch", "scipy", "sklearn", "pandas"}


def libraries(pid: int) -> set[str]:
    """The packages whose compiled parts a process has loaded."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return {part.partition("/")[0] for line in lines for part in line.split("/site-packages/")[1:]}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_neither_the_server_nor_its_worker_loads_torch_or_scipy(serve, tmp_path, model):
    server = serve(tmp_path / "new.engram", OMP_NUM_THREADS="4")
    client = server.client
    lesson = client.post("/api/lessons", **form({shape: drawings(shape, 4) for shape in ("circle", "dots")})).json()
    assert ended(client, lesson["number"])["state"] == "done"
    table = client.get("/api/confusion")
    merged = client.post("/api/merge", data={"commit": "true"}, files={"model": ("x", model.read_bytes())}).json()
    asked = [
        table,
        client.post("/api/predict", files=[("picture", ("x", draw("dots", 40)))]),
        client.post("/api/unknown", json={"share": 0.2}),
        client.post("/api/rename", json={"name": "stripes", "new_name": "lines"}),
        client.post("/api/forget", json={"name": "circle"}),
        client.post("/api/undo", json={"version": merged["model"]["version"] + 3}),
        *(client.get(f"/api/{path}") for path in ("model", "model/file", "model/card", "model/onnx")),
    ]
    assert [answer.status_code for answer in asked] == [200] * len(asked)
    for pid in (server.process.pid, server.worker()):
        assert libraries(pid) >= {"numpy", "onnxruntime"}
        assert not libraries(pid) & HEAVY
    assert len(list(Path(f"/proc/{server.worker()}/task").iterdir())) == 1  # numpy started none

"""POST /api/merge: adding what another model knows."""

import tempfile
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.datastructures import UploadFile

from engram.errors import ModelFileError
from engram.store import Merger, MergeSource, ModelStore, merge_models, plan_merge
from engram.web.limits import RefusedError
from engram.web.schemas import UPLOAD_PROBLEMS, MergeView
from engram.web.server import InjectedServer
from engram.web.uploads import parse_form

router = APIRouter(tags=["change"])

_FORM = {
    "type": "object",
    "required": ["model"],
    "properties": {
        "model": {"type": "string", "format": "binary", "description": "A model file. Its name is ignored."},
        "commit": {"type": "boolean", "description": "Do it. Without, only what it would change is told."},
    },
}
_BODY = {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": _FORM}}}}


@router.post("/api/merge", responses=UPLOAD_PROBLEMS, openapi_extra=_BODY)
async def merge(request: Request, server: InjectedServer) -> MergeView:
    """Add what another model knows, as if this one had learned it. Classes of one name become one.

    Both have to see pictures with the same network and learn by the same method. Undo takes it back.
    """
    form = await parse_form(request, 1)
    file, commit = form.get("model"), form.get("commit") == "true"
    if not isinstance(file, UploadFile):
        raise RefusedError(422, "the form holds no model; send it as a file in a field called model")
    content, done = await file.read(), list[Merger]()
    await form.close()
    async with server.changing():
        await server.change(lambda: done.append(_merge(server.store, content, commit)))
        return MergeView.of(done[0], await server.view() if commit else None)


def _merge(store: ModelStore, content: bytes, commit: bool) -> Merger:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "other.engram"
        path.write_bytes(content)
        try:
            other = MergeSource("the other", ModelStore(path, device=store.device).read())
        except ModelFileError as error:
            raise RefusedError(422, str(error).replace(str(path), "the file")) from None
        plan = plan_merge([MergeSource("this model", store.read()), other])  # says in these words what does not fit
        return merge_models(store, [store.path, path], replace_existing=True) if commit else plan

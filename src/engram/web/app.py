"""The page and the HTTP API behind it, which /api/openapi.json describes."""

import contextlib
from collections.abc import AsyncIterator

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

import engram
from engram.errors import DamagedModelError, ModelFileError
from engram.store import ModelBusyError, ModelStore, NothingToDoError, Plan
from engram.web.addresses import PublicUrl
from engram.web.limits import Limits
from engram.web.routes import changes, downloads, lessons, merge, model, page, predict
from engram.web.security import Guard
from engram.web.server import Server


def create_app(
    store: ModelStore,
    plan: Plan,
    *,
    bound: str = "127.0.0.1",
    public: PublicUrl | None = None,
    token: str | None = None,
    token_is_kept: bool = False,
    limits: Limits | None = None,
) -> FastAPI:
    """The application around one model file, to be served on the address `bound`, or by a proxy as `public`.

    `plan` says how to learn, which matters most for a first model. With a `token`, every request must carry it.
    """
    server = Server(store, plan, limits or Limits())

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        server.queue.start()
        try:
            yield
        finally:
            server.close()

    app = FastAPI(
        title="engram", version=engram.__version__, description=(__doc__ or ""), lifespan=lifespan,
        openapi_url="/api/openapi.json", docs_url=None, redoc_url=None,
    )  # fmt: skip
    app.state.server = server
    app.add_middleware(
        Guard, bound=bound, token=token, limits=server.limits, public=public, token_is_kept=token_is_kept
    )
    for routes in (model, predict, lessons, changes, merge, downloads, page):
        app.include_router(routes.router)
    for kind in (RequestValidationError, ModelFileError, ModelBusyError, NothingToDoError, ValueError):
        app.add_exception_handler(kind, _answer_error)
    return app


async def _answer_error(_: Request, error: Exception) -> JSONResponse:
    """Answer an expected error with its status and one line that says what to do."""
    status, detail = 422, str(error)
    match error:
        case RequestValidationError():
            first = error.errors()[0]
            detail = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
            if first["type"] == "json_invalid":
                status, detail = 400, "the body is not JSON"
        case DamagedModelError():
            status = 503
            detail += "; put a good copy in its place, or a previous version with engram undo"
        case ModelFileError():
            status = 503
        case ModelBusyError():
            status, detail = 409, "another process is changing the model; try again when it is done"
        case NothingToDoError():
            status = 409
    return JSONResponse({"detail": detail}, status)

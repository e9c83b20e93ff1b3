"""Whatever a client sends, the answer is one that the OpenAPI schema describes, and never a 500."""

import threading
import time
from collections.abc import Iterator

import pytest
import schemathesis
import uvicorn
from conftest import PLAN
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from engram.store import ModelStore
from engram.web.app import create_app
from engram.web.limits import Limits

CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
]
OPERATIONS = {
    ("GET", "/api/model"), ("POST", "/api/predict"), ("GET", "/api/lessons"), ("POST", "/api/lessons"),
    ("DELETE", "/api/lessons/{number}"), ("GET", "/api/events"), ("POST", "/api/forget"), ("POST", "/api/rename"),
    ("POST", "/api/undo"), ("POST", "/api/redo"), ("POST", "/api/unknown"), ("GET", "/api/state"),
    ("GET", "/api/confusion"), ("POST", "/api/merge"),
    ("GET", "/api/model/file"), ("GET", "/api/model/onnx"), ("GET", "/api/model/card"),
}  # fmt: skip
# The stream of events does not end, and the export takes some seconds: test_api.py has both.
NOT_FUZZED = {("GET", "/api/events"), ("GET", "/api/model/onnx")}


@pytest.fixture(scope="module")
def api(tmp_path_factory, taught_bytes) -> Iterator[schemathesis.BaseSchema]:
    """A running server, which the tests of this file use up together."""
    path = tmp_path_factory.mktemp("schema") / "shapes.engram"
    path.write_bytes(taught_bytes)
    app = create_app(ModelStore(path, device="cpu", wait=0.2), PLAN, limits=Limits(lessons=2))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield schemathesis.openapi.from_url(f"http://127.0.0.1:{port}/api/openapi.json")
    server.should_exit = True
    thread.join()


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize(("method", "path"), sorted(OPERATIONS - NOT_FUZZED))
def test_answers_are_as_described(api, method, path, mode):
    """With what the schema allows, and with what it does not."""

    @given(case=api[path][method].as_strategy(generation_mode=mode))
    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    def send(case: schemathesis.Case) -> None:
        case.call_and_validate(checks=CHECKS)

    try:
        send()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE  # nothing about the request can be wrong


def test_the_schema_is_complete(api):
    operations = {(one.ok().method.upper(), one.ok().path) for one in api.get_all_operations()}
    assert operations == OPERATIONS
    for path, methods in api.raw_schema["paths"].items():
        for method, about in methods.items():
            assert about["description"], (method, path)
            for status, answer in about["responses"].items():
                assert answer["description"], (method, path, status)
                assert all(content.get("schema") for content in answer.get("content", {}).values()), (method, path)

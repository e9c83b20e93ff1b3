"""What a stranger gets by the name on the package index: names, addresses and versions agree everywhere."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

import engram
from engram.learners import registry

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
README = (ROOT / "README.md").read_text()
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()

# `engram` on the index is somebody else's. An extra of it, or an install of it:
OLD_NAME = re.compile(r"\bengram\\*\[|pip3? install (?:-\S+ )*[\"']?engram(?!-learn|\.)\b")


def texts() -> list[Path]:
    """Everything that tells people what to do."""
    folders = [ROOT / name for name in ("src", "docs", "benchmarks", ".github", ".ci")]
    suffixes = {".py", ".md", ".js", ".html", ".json", ".toml", ".yml"}
    found = [path for folder in folders for path in folder.rglob("*") if path.suffix in suffixes]
    return [*found, *ROOT.glob("*.md"), *ROOT.glob("*.yml"), ROOT / "pyproject.toml", ROOT / "Makefile"]


@pytest.mark.parametrize(
    "line", ["pip install engram", "pip install 'engram[web]'", "`engram\\\\[onnx]`", "pip install -U engram"]
)
def test_the_old_name_would_be_found(line):
    assert OLD_NAME.search(line)


@pytest.mark.parametrize(
    "line", ["pip install 'engram-learn[web]'", "engram learn [FOLDER]", "`engram doctor [MODEL]`"]
)
def test_the_new_name_is_none(line):
    assert not OLD_NAME.search(line)


def test_nothing_installs_by_the_old_name():
    assert PROJECT["name"] == "engram-learn"
    assert len(texts()) > 100
    for path in texts():
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not OLD_NAME.search(line), f"{path.relative_to(ROOT)}:{number}: {line}"


def test_every_address_is_the_repositorys():
    source = PROJECT["urls"]["Source"]
    owner, name = source.removeprefix("https://github.com/").split("/")
    for path in texts():
        for address in re.findall(
            r"https://(?:github\.com|raw\.githubusercontent\.com)/[\w.-]+/[\w.-]+", path.read_text()
        ):
            if address.endswith(f"/{name}"):
                assert address.endswith(f"/{owner}/{name}"), f"{path.relative_to(ROOT)}: {address}"
    site = (ROOT / "mkdocs.yml").read_text()
    assert f"repo_url: {source}\n" in site
    assert f"site_url: {PROJECT['urls']['Documentation']}\n" in site


def test_pictures_and_links_of_the_index_page_lead_to_the_tag():
    page = README
    for rule in PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        page = re.sub(rule["pattern"], rule["replacement"], page)
    before, after = (re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", text) for text in (README, page))
    assert len(before) == len(after) > 20
    repository = PROJECT["urls"]["Source"].removeprefix("https://github.com/")
    for (picture, target), (_, address) in zip(before, after, strict=True):
        if not target.startswith("https://"):
            start = "https://raw.githubusercontent.com/{}/" if picture else "https://github.com/{}/blob/"
            assert address == f"{start.format(repository)}v$HFPR_VERSION/{target}"


def test_the_newest_release_of_the_changelog_is_this_version():
    heads = re.findall(r"^## (.*)$", CHANGELOG, re.MULTILINE)
    assert heads[0] == "[Unreleased]"
    assert re.fullmatch(rf"\[{re.escape(engram.__version__)}\] - \d{{4}}-\d\d-\d\d", heads[1])
    kinds = set(re.findall(r"^### (.*)$", CHANGELOG, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_version_stands_in_one_place():
    assert "version" in PROJECT["dynamic"]
    assert PYPROJECT["tool"]["hatch"]["version"]["path"] == "src/engram/__init__.py"
    for path in (ROOT / "src").rglob("*.py"):
        if path.name != "__init__.py" or path.parent.name != "engram":
            assert f'"{engram.__version__}"' not in path.read_text(), path


def test_the_base_takes_nothing_heavy():
    names = {re.split(r"[<>=]", line)[0] for line in PROJECT["dependencies"]}
    assert names.isdisjoint({"torch", "scipy", "scikit-learn", "pandas", "onnx", "matplotlib"})
    assert "onnxruntime" in names


def lowest_versions(pyproject: Path) -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("lowest_versions", ROOT / ".ci" / "lowest_versions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.lowest_versions(pyproject)


def test_the_lowest_versions_are_those_declared(tmp_path):
    lowest = lowest_versions(ROOT / "pyproject.toml")
    declared = re.findall(
        r'"([\w-]+)(?:>=|==)([\d.]+)"', (ROOT / "pyproject.toml").read_text().split("[project.urls]")[0]
    )
    tools = {"ruff", "mypy", "mkdocs-material", "hatch-fancy-pypi-readme"}
    assert lowest == {name: version for name, version in declared if name not in tools}
    assert "torch" in lowest
    assert "fastapi" in lowest
    unbounded = tmp_path / "pyproject.toml"
    unbounded.write_text('[project]\nname = "x"\ndependencies = ["numpy"]\noptional-dependencies = {}\n')
    with pytest.raises(ValueError, match="numpy: one lowest version"):
        lowest_versions(unbounded)


def test_workflows_are_whole_and_run_every_python_we_name():
    yaml = pytest.importorskip("yaml")
    flows = {path.name: yaml.safe_load(path.read_text()) for path in (ROOT / ".github" / "workflows").glob("*.yml")}
    for name, flow in flows.items():
        for job, content in flow["jobs"].items():
            assert {"runs-on", "steps", "timeout-minutes"} <= set(content), f"{name}: {job}"
            assert all(("run" in step) != ("uses" in step) for step in content["steps"]), f"{name}: {job}"
            assert set(content.get("needs", "").split()) <= set(flow["jobs"]), f"{name}: {job}"
        assert flow["permissions"] == {"contents": "read"}, name  # a job that needs more asks for it itself
    matrix = flows["ci.yml"]["jobs"]["test"]["strategy"]["matrix"]
    named = [line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if "Python :: 3." in line]
    assert matrix["python"] == named
    assert {one["os"].split("-")[0] for one in matrix["include"]} | {"ubuntu"} == {"ubuntu", "macos", "windows"}
    assert flows["release.yml"]["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    for path in [*(ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"), ROOT / ".pre-commit-config.yaml"]:
        assert yaml.safe_load(path.read_text()), path


def test_who_cites_finds_this_version_and_the_paper():
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert str(citation["version"]) == engram.__version__
    assert f"[{engram.__version__}] - {citation['date-released']}" in (ROOT / "CHANGELOG.md").read_text()
    assert citation["repository-code"] == PROJECT["urls"]["Source"]
    assert {"title", "authors", "message"} <= set(citation)
    (paper,) = citation["references"]
    names = ", ".join(author["family-names"] for author in paper["authors"])
    assert f"{names}: {paper['title']}, {paper['year']}" == registry.find("mas").about.paper

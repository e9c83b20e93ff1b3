"""What the README and the docstrings show can be pasted."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from engram.testing import check_learner

SOURCE = Path(__file__).parents[1] / "src"

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_the_readmes_estimator_example_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("sklearn")
    code = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == ["[0 1 2 3 4 7]", "[7 7 7]"]
    assert "classes.means 640" in printed
    assert (tmp_path / "digits.engram").exists()


def test_docstring_examples_run(tmp_path):
    """In a process of their own, where no test has registered anything."""
    pytest.importorskip("torch")
    files = [str(path) for path in sorted(SOURCE.rglob("*.py")) if ">>> " in path.read_text()]
    assert len(files) > 3
    run = [sys.executable, "-m", "pytest", "--doctest-modules", "-q", "-p", "no:cacheprovider", *files]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_links_lead_somewhere():
    root = Path(__file__).parents[1]
    for page in (*root.glob("*.md"), *(root / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_example_of_a_method_is_one(tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "add-a-method.md").read_text()
    names: dict[str, object] = {"__name__": "example"}
    exec(compile(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0], "add-a-method.md", "exec"), names)
    check_learner(names["NearestMedian"].new)  # type: ignore[attr-defined]


def test_the_readmes_results_are_the_ledgers():
    """Accuracy on the way and at the end, and megabytes, of both data sets."""
    ledger = (Path(__file__).parents[1] / "docs" / "reproduction.md").read_text()
    measured: dict[str, list[str]] = {}
    for table in re.findall(r"<!-- compare/\w+ -->\n(.*?)<!-- end -->", ledger, re.DOTALL):
        for line in table.splitlines():
            features, method, *numbers = (cell.strip() for cell in line.strip("|").split("|"))
            if features == "resnet50:pooled":
                measured.setdefault(method.lower(), []).extend((numbers[2], numbers[3], numbers[7]))
    rows = re.findall(r"^\| \W*(\w[^|]*)\|(.*)\|$", README.split("## Does it work?")[1], re.MULTILINE)
    assert len(rows) == 9  # with its head
    for name, line in rows[1:]:
        all_1, final_1, all_2, final_2, kept = (cell.strip() for cell in line.split("|"))
        method = max((one for one in measured if name.lower().startswith(one)), key=len)
        expected = measured[method]
        assert [all_1, final_1, all_2, final_2] == [expected[i].removeprefix("0") for i in (0, 1, 3, 4)], name
        assert kept == (f"{expected[2]} and {expected[5]} MB" if expected[2] else ""), name

"""Print the lowest version that pyproject.toml allows of every package, as constraints for pip.

What these packages need in turn is as new as pip finds it: we declare nothing about that.
"""

import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
NOT_TESTED = ("lint", "docs")  # tools, no part of what is tested


def lowest_versions(pyproject: Path) -> dict[str, str]:
    """The version behind >= or ==, by package."""
    project = tomllib.loads(pyproject.read_text())["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for name in extras if name not in NOT_TESTED for line in extras[name])]
    lowest = {}
    for requirement in map(Requirement, lines):
        if requirement.name == project["name"]:  # an extra made of others
            continue
        versions = [bound.version for bound in requirement.specifier if bound.operator in (">=", "==")]
        if len(versions) != 1:
            raise ValueError(f"{requirement}: one lowest version is needed")
        lowest[requirement.name] = versions[0]
    return lowest


if __name__ == "__main__":
    sys.stdout.writelines(f"{name}=={version}\n" for name, version in lowest_versions(PYPROJECT).items())

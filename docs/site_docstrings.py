"""Our docstrings say `name : what it is` where numpydoc expects a type; types are in the signatures.

For the site, each such line becomes a name with its description below it.
"""

import re
from typing import Any

import griffe

SECTION = re.compile(r"^(?:Parameters|Attributes)\n-+\n(?:.+(?:\n|$))+", re.MULTILINE)
ITEM = re.compile(r"^(\w+) : (.*)$", re.MULTILINE)


class DescriptionsAfterNames(griffe.Extension):
    """What MkDocs loads."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the docstring of everything that has one."""
        if obj.docstring:
            obj.docstring.value = SECTION.sub(lambda section: ITEM.sub(r"\1\n    \2", section[0]), obj.docstring.value)

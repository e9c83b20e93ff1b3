"""Links on the site to files in the repository but not in docs/, such as results/: they lead to the repository."""

import re
from typing import Any

UPWARDS = re.compile(r"\]\(((?:\.\./)+)([^)]+)\)")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """MkDocs calls this for every page before it is rendered."""
    depth = page.file.src_uri.count("/")  # from tables/tables.md, ../method.md is still in docs/

    def lead_to_repository(link: re.Match[str]) -> str:
        return link[0] if link[1].count("/") <= depth else f"]({config.repo_url}/blob/main/{link[2]})"

    return UPWARDS.sub(lead_to_repository, markdown)

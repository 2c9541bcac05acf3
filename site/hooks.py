# SPDX-License-Identifier: Apache-2.0
"""What site/mkdocs.yml needs beside its settings. MkDocs knows one folder of pages; ours lie in doc/ and at the root of
the tree. Here every page and picture gets the address that it has in the tree, so that links lead to the same place in
both, and nothing is copied or rewritten. Rows of results, which are files of data, stand below the links to them.
Called by MkDocs."""

import csv
import re
from pathlib import Path
from typing import Any

from markdown import Extension, Markdown  # type: ignore[import-untyped]
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
OF_THE_ROOT = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE")
OF_THE_SITE = ("site/pages.css", "site/sortable.js")
FIRST = ("README.md",)
# In the order in which one needs them; of doc/ all that is in neither is about how it works.
USING = (
    "questions", "packages", "linking", "knobs", "lines", "observe", "errors", "guarded", "heaps", "profile", "migrate",
    "jemalloc", "limits", "platforms",
)  # fmt: skip
WORKING = ("lab", "lanes", "peers", "coverage", "releases")
GUIDES, GLOSSARY = "doc/guides", "doc/design.md"
SECTIONS = {"Lines": "doc/line", "Boxes": "doc/box", "Results": "doc/results", "Decisions": "doc/decisions"}


class ListsIndentedByTwo(Extension):  # type: ignore[misc]
    """What belongs to an item of a list is indented by two spaces, as in CommonMark; Python-Markdown asks for four."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802  # the name is Python-Markdown's
        md.tab_length = 2


def pages(folder: str) -> list[str]:
    """Of a folder, without those below; what has a date has the newest first."""
    found = sorted(str(path.relative_to(ROOT)) for path in (ROOT / folder).glob("*.md"))
    dated = [page for page in found if Path(page).name[:2] == "20"]
    return [page for page in found if page not in dated] + dated[::-1]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    there = pages("doc")
    using, working = ([page for name in names if (page := f"doc/{name}.md") in there] for names in (USING, WORKING))
    how: list[Any] = [page for page in there if page not in using + working]
    how = [{"Design, and the glossary": page} if page == GLOSSARY else page for page in how]
    parts: list[Any] = [
        {"Using it": [*using[:1], {"Guides": pages(GUIDES)}, *using[1:], "SECURITY.md"]},
        {"How it works": [*how, *({title: pages(SECTIONS[title])} for title in ("Lines", "Boxes"))]},
        {"Working on it": ["CONTRIBUTING.md", *working, "CHANGELOG.md"]},
    ]
    config.nav = [*FIRST, *parts, *({title: pages(SECTIONS[title])} for title in ("Results", "Decisions"))]
    config.markdown_extensions.append(ListsIndentedByTwo())
    return config


def table(data: Path) -> str:
    with data.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Without the line of the licence, or the heading is not what the page begins with, and gives it no title. What a
    line that is a link to rows leads to, follows it; it sorts itself."""
    text = markdown.removeprefix("<!-- SPDX-License-Identifier: Apache-2.0 -->\n")
    folder = (ROOT / page.file.src_uri).parent
    return re.sub(
        r"^\[[^\]\n]+\]\((rows/[\w.-]+\.csv)\)\.?$",
        lambda link: (
            f'{link[0]}\n\n<details markdown="1"><summary>Rows</summary>\n\n{table(folder / link[1])}\n\n</details>'
        ),
        text,
        flags=re.MULTILINE,
    )


def on_files(files: Files, config: MkDocsConfig) -> Files:
    of_doc = [f"doc/{file.src_uri}" for file in files if file.src_dir == config.docs_dir]
    of_theme = [file for file in files if file.src_dir != config.docs_dir]
    ours = [File(name, str(ROOT), config.site_dir, config.use_directory_urls) for name in
            (*OF_THE_ROOT, *OF_THE_SITE, *of_doc)]  # fmt: skip
    return Files([*of_theme, *ours])

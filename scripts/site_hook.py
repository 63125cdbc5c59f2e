"""What MkDocs does not do by itself for docs/, which is written to be read in the repository too.

- A page of the repository outside docs/ that a page of docs/ links to is taken into the site; a
  link to anything else out there becomes plain text.
- Light and dark work without the theme's highlighter.
- A page of the navigation that is not written yet is left out of it.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

OUTSIDE = re.compile(r"\[(?P<words>[^\]]*)\]\((?P<target>\.\./[^)#\s]+)(?P<place>#[^)\s]*)?\)")
COLORS_OF_NO_HIGHLIGHTER = '<style id="hljs-light"></style><style id="hljs-dark"></style>'
TAKEN_IN = "repository"
"""The folder of the site for pages from outside docs/."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Leave out of the navigation what is not there."""
    config.nav = written(config.nav or [], Path(config.docs_dir))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Take in the pages outside docs/ that a page in it links to."""
    docs = Path(config.docs_dir)
    for page in [one for one in files if one.is_documentation_page()]:
        for found in OUTSIDE.finditer(page.content_string):
            source = outside_page(docs, page.src_uri, found["target"])
            place = None if source is None else place_of(docs, source)
            if place is not None and files.get_file_from_path(place) is None:
                files.append(File.generated(config, place, abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links out of docs/ at what was taken in, or make text of them."""
    docs = Path(config.docs_dir)

    def rewritten(found: re.Match[str]) -> str:
        if is_within(docs, page.file.src_uri, found["target"]):
            return found["words"] if is_taken_in(page) else found[0]
        source = outside_page(docs, page.file.src_uri, found["target"])
        if source is None:
            return found["words"]
        here = posixpath.dirname(page.file.src_uri)
        target = posixpath.relpath(place_of(docs, source), here)
        return f"[{found['words']}]({target}{found['place'] or ''})"

    return OUTSIDE.sub(rewritten, markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Give the theme's switch between light and dark the two style sheets that it turns on and off.

    They are those of its highlighter, which is not used; without them the switch does nothing.
    """
    return output.replace("</head>", f"{COLORS_OF_NO_HIGHLIGHTER}</head>", 1)


def written(nav: list[Any], docs: Path) -> list[Any]:
    """The navigation without pages that do not exist and headings that have none left."""
    kept: list[Any] = []
    for entry in nav:
        ((name, content),) = entry.items()
        if isinstance(content, list):
            content = written(content, docs)
        elif not (docs / content).is_file():
            content = None
        if content:
            kept.append({name: content})
    return kept


def is_taken_in(page: Page) -> bool:
    """Return whether a page lies outside docs/, whose links lead to other places than they say."""
    return page.file.src_uri.startswith(f"{TAKEN_IN}/")


def is_within(docs: Path, page: str, target: str) -> bool:
    """Return whether a link of a page of docs/ leads to another file of docs/."""
    return (docs / page).parent.joinpath(target).resolve().is_relative_to(docs)


def outside_page(docs: Path, page: str, target: str) -> Path | None:
    """Return the Markdown file outside docs/ that a link of a page leads to, if it is one."""
    source = (docs / page).parent.joinpath(target).resolve()
    is_page = source.suffix == ".md" and source.is_file()
    is_outside = source.is_relative_to(docs.parent) and not is_within(docs, page, target)
    return source if is_page and is_outside else None


def place_of(docs: Path, source: Path) -> str:
    """Where a page from outside docs/ stands in the site."""
    return posixpath.join(TAKEN_IN, source.relative_to(docs.parent).as_posix())

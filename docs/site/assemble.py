"""Assembles the sources of the documentation site in target/site-source.

Pages come from docs/ and from the rest of the project (`ELSEWHERE`), tutorials from executed notebooks, the Rust reference from
`cargo doc`. Links are rewritten to the places of the site. A link to a file that is no page leads to a copy of the file.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS, SITE = ROOT / "docs", ROOT / "docs" / "site"
SOURCE = ROOT / "target" / "site-source"
NOTEBOOKS = ROOT / "target" / "site-tutorials"
#: Pages from outside of docs/, and their places in the site.
ELSEWHERE = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "bench/paper/README.md": "benchmark-program.md",
    "crates/prsl/docs/language.md": "language.md",
    "docs/site/python.md": "reference/python.md",
    "docs/site/python-learning.md": "reference/python-learning.md",
    "docs/site/rust.md": "reference/rust.md",
    "docs/site/tutorials.md": "tutorials/index.md",
}
#: Folders that links name, and the pages that stand for them.
FOLDERS = {"docs/tutorials": "tutorials/index.md", "examples": "gallery.md", "docs": "index.md"}
#: Headings of pages that have none, because they are parts of others.
HEADINGS = {"crates/prsl/docs/language.md": "# The rule language\n\n"}


def main() -> None:
    shutil.rmtree(SOURCE, ignore_errors=True)
    pages = places()
    for path, place in pages.items():
        text = HEADINGS.get(path, "") + (ROOT / path).read_text()
        write(place, rewritten(text, ROOT / path, place, pages))
    for image in [*DOCS.rglob("*.png"), *DOCS.rglob("*.svg")]:
        copy(image, str(image.relative_to(DOCS)))
    copy(SITE / "site.css", "files/site.css")
    copy(ROOT / "crates/prsl-server/page/page/icon.svg", "files/icon.svg")
    copy_tutorials()
    copy_python()
    shutil.copytree(ROOT / "target" / "doc", SOURCE / "rust", ignore=shutil.ignore_patterns(".*", "src"))
    config()


def places() -> dict[str, str]:
    """The place in the site of each page of the project."""
    own = {str(page.relative_to(ROOT)): str(page.relative_to(DOCS)) for page in sorted(DOCS.rglob("*.md"))}
    return {path: place for path, place in own.items() if not path.startswith("docs/site/")} | ELSEWHERE


def rewritten(text: str, page: pathlib.Path, place: str, pages: dict[str, str]) -> str:
    """The text with links to places of the site. Code is left as it is."""

    def link(found: re.Match[str]) -> str:
        return f"]({target(found[1], page, place, pages)})"

    parts = re.split(r"(^```.*?^```$|`[^`\n]+`)", text, flags=re.S | re.M)
    return "".join(part if part.startswith("`") else re.sub(r"\]\(([^)\s]+)\)", link, part) for part in parts)


def target(link: str, page: pathlib.Path, place: str, pages: dict[str, str]) -> str:
    parts = urllib.parse.urlsplit(link)
    is_generated = str(page.relative_to(ROOT)).startswith("docs/site/")
    if parts.scheme or not parts.path or is_generated:
        return link
    path = str((page.parent / parts.path).resolve().relative_to(ROOT))
    there = pages.get(path) or FOLDERS.get(path) or tutorial(path) or copied(path, page)
    fragment = f"#{parts.fragment}" if parts.fragment else ""
    return os.path.relpath(there, pathlib.Path(place).parent) + fragment


def tutorial(path: str) -> str | None:
    """The place of a tutorial's page."""
    is_tutorial = path.startswith("docs/tutorials/") and path.endswith(".py")
    return path.removeprefix("docs/").removesuffix(".py") + ".md" if is_tutorial else None


def copied(path: str, page: pathlib.Path) -> str:
    """The place of a copy of a file that is no page."""
    if not (ROOT / path).is_file():
        sys.exit(f"{page.relative_to(ROOT)} links to {path}, which is no page and no file")
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    copy(ROOT / path, f"files/{path}")
    return f"files/{path}"


def copy_tutorials() -> None:
    """Executed tutorials with their figures."""
    found = sorted(NOTEBOOKS.glob("*.md"))
    if len(found) != len(list((DOCS / "tutorials").glob("*.py"))):
        sys.exit(f"{NOTEBOOKS.relative_to(ROOT)} does not have all tutorials; run docs/site/build")
    for page in found:
        write(f"tutorials/{page.name}", page.read_text())
    for folder in NOTEBOOKS.glob("*_files"):
        shutil.copytree(folder, SOURCE / "tutorials" / folder.name)


def copy_python() -> None:
    """The sources of the Python package. Sphinx roles become code, and sessions get fences, as Markdown needs it."""
    package = ROOT / "target" / "site-python" / "prsl"
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir(parents=True)
    for source in [*(ROOT / "python" / "prsl").glob("*.py"), *(ROOT / "python" / "prsl").glob("*.pyi")]:
        text = re.sub(r":(?:class|mod|func|meth|attr|data):`", "`", source.read_text())
        text = re.sub(r"^( *)(>>> .*?)(?=\n *\n|\n *\"\"\")", fenced, text, flags=re.S | re.M)
        (package / source.name).write_text(text)


def fenced(session: re.Match[str]) -> str:
    indent = session[1]
    return f"{indent}```pycon\n{indent}{session[2]}\n{indent}```"


def config() -> None:
    """The configuration without pages that do not exist yet."""
    lines = (SITE / "mkdocs.yml").read_text().splitlines()
    kept = []
    for line in lines:
        named = re.search(r":\s*([\w./-]+\.md)\s*$", line)
        if named and not (SOURCE / named[1]).exists():
            print(f"note: {named[1]} does not exist, and is left out of the navigation")
        else:
            kept.append(line)
    (ROOT / "target" / "site-mkdocs.yml").write_text("\n".join(kept).replace("../../target/", "") + "\n")


def write(place: str, text: str) -> None:
    path = SOURCE / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def copy(path: pathlib.Path, place: str) -> None:
    (SOURCE / place).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, SOURCE / place)


if __name__ == "__main__":
    main()

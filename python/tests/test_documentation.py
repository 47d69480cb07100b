"""The code blocks of all pages run, links lead somewhere, and the site has all pages."""

from __future__ import annotations

import pathlib
import re
import shutil
import urllib.parse

import pytest
from documentation import DEVELOPMENT, LANGUAGES, Reader, blocks, commands, matches, needs

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUTSIDE = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "ARCHITECTURE.md", "CHANGELOG.md", "crates/prsl/docs/language.md"]
#: The pages of `docs/site` have the site's links, which `make site` checks.
PAGES = [ROOT / name for name in OUTSIDE] + sorted(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "site")
#: Markdown that has no code of ours, for links only.
LINKED = [*PAGES, *sorted((ROOT / "bench").rglob("README.md")), *sorted((ROOT / "tests").rglob("README.md"))]
#: What a page takes for granted.
PREPARED = {
    "docs/server.md": "cp examples/warehouse.prsl . && mkdir models && cp warehouse.prsl models && echo 2f4c1b0a9d8e7f60 > token",
}
#: Blocks of the service are run by `crates/prsl-cli/tests/it/serve/document.rs`, on a service with a writable folder.
ELSEWHERE = {"docs/server.md": "$ curl"}


def name(page: pathlib.Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_blocks_run(page: pathlib.Path, command: str, tmp_path: pathlib.Path) -> None:
    text = page.read_text()
    for package in needs(text):
        pytest.importorskip(package)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    reader = Reader(tmp_path, command)
    if name(page) in PREPARED:
        reader.run_command(PREPARED[name(page)])
    if name(page) in ELSEWHERE:
        begin = ELSEWHERE[name(page)]
        kept = [block for block in blocks(text) if not block.text.startswith(begin)]
        assert len(kept) < len(blocks(text))
        try:
            for block in kept:
                reader.run(block)
        finally:
            reader.stop_server()
    else:
        reader.follow(page)


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    for page in PAGES:
        named = [line for block in blocks(page.read_text()) if block.language == "sh" for line in commands(block.text)]
        named += re.findall(r"`(make [\w-]+)", page.read_text())
        for line in named:
            words = line.split()
            if words[0] == "make":
                targets_of_line = [word for word in words[1:2] if not word.startswith("-")]
                assert set(targets_of_line) <= targets, f"{name(page)}: `{line}`"


def test_rust_blocks_are_doc_tests() -> None:
    listed = (ROOT / "crates/prsl-testkit/src/documentation.rs").read_text()
    # The README's example is compared with that of the crate page by crates/prsl/tests/readme.rs.
    for page in PAGES[1:]:
        if any(block.language == "rust" for block in blocks(page.read_text())):
            assert f"../../../{name(page)}" in listed, f"add {name(page)} to crates/prsl-testkit/src/documentation.rs"


def anchors(page: pathlib.Path) -> set[str]:
    """The anchors of a page's headings, as code hosts and MkDocs make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    plain = [re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in headings]
    return {re.sub(r"\s", "-", heading) for heading in plain}


def links(page: pathlib.Path) -> list[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)
    text = re.sub(r"`[^`\n]*`", "", text)
    return re.findall(r"\]\(([^)\s]+)\)", text)


@pytest.mark.parametrize("page", LINKED, ids=name)
def test_links(page: pathlib.Path) -> None:
    for link in links(page):
        parts = urllib.parse.urlsplit(link)
        if parts.scheme:
            assert parts.scheme in {"http", "https", "mailto"} and (parts.netloc or parts.scheme == "mailto"), link
            continue
        target = (page.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else page
        assert target.exists(), f"{name(page)} links to {link}, which does not exist"
        assert target.is_relative_to(ROOT), f"{name(page)} links to {link}, outside of the project"
        if parts.fragment:
            assert parts.fragment in anchors(target), f"{name(page)} links to {link}; {target.name} has no such heading"


def test_every_page_is_in_the_navigation() -> None:
    config = (ROOT / "docs/site/mkdocs.yml").read_text()
    listed = set(re.findall(r":\s*([\w./-]+\.md)\s*$", config, re.M))
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md") if "site" not in page.parts}
    assert not pages - listed, "add them to docs/site/mkdocs.yml"


def test_the_runner(tmp_path: pathlib.Path, command: str) -> None:
    """The runner finds wrong blocks; otherwise the tests above would not mean anything."""
    assert matches("a\nb 1  \n", "a\nb ...\n") and not matches("a\nc\n", "a\nb\n") and matches("x\n", "...")
    assert commands("a \\\n  b\n# no\nc <<END\nd\nEND\n") == ["a \\\n  b", "c <<END\nd\nEND"]
    page = tmp_path / "page.md"
    wrong = {
        "```console\n$ echo yes\nno\n```": "prints",
        "```sh\nfalse\n```": "exits with 1",
        "```sh\nprsl predict nothing.prsl\n```": "exits with",
        "```python\n>>> 1 + 1\n3\n```": "Expected",
        "```prsl\nlabel a\nrule 1: a & !a\n```": "findings",
        "```perl\nprint 1\n```": "not a language",
    }
    for text, message in wrong.items():
        page.write_text(f"A paragraph.\n\n{text}\n")
        with pytest.raises(AssertionError, match=message):
            Reader(tmp_path, command).follow(page)
    page.write_text("Save as `a/b.csv`:\n\n```csv\nx\n1\n```\n\nThen:\n\n```console\n$ cat a/b.csv\nx\n1\n```\n")
    Reader(tmp_path, command).follow(page)
    assert not DEVELOPMENT & LANGUAGES


def test_the_make_file_lists_its_targets() -> None:
    text = (ROOT / "Makefile").read_text()
    [phony] = re.findall(r"^\.PHONY: (.*)$", text, re.M)
    assert set(re.findall(r"^([\w-]+):", text, re.M)) == set(phony.split())



"""Checks the files and metadata of all packages in target/package (crates) and target/packages (Python)."""

from __future__ import annotations

import email.parser
import pathlib
import re
import sys
import tarfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
LICENSES = ("LICENSE-MIT", "LICENSE-APACHE")
#: What a crate may have at its root.
OF_CRATES = {*LICENSES, "README.md", "Cargo.toml", "Cargo.toml.orig", "Cargo.lock", "src", "docs", "page", ".cargo_vcs_info.json"}
#: What the source distribution may have at its root: what it takes to build the wheel.
OF_SDIST = {*LICENSES, "README.md", "Cargo.toml", "Cargo.lock", "PKG-INFO", "pyproject.toml", "crates", "python"}
METADATA = ("name", "version", "description", "license", "readme", "keywords", "categories", "authors", "rust-version")
#: Largest package in bytes. Registries refuse more than ten times as much.
MAX_BYTES = 1_000_000


def main(crates: list[str]) -> None:
    for crate in crates:
        check_crate(crate)
    check_sdist()
    check_citation()


def check_crate(crate: str) -> None:
    # The folder below target/package depends on the version of cargo.
    found = sorted((ROOT / "target" / "package").rglob(f"{crate}-{VERSION}.crate"))
    path = found[0] if found else ROOT / "target" / "package" / f"{crate}-{VERSION}.crate"
    files = read(path)
    check_files(path, files, OF_CRATES)
    package = tomllib.loads(files["Cargo.toml"].decode())["package"]
    missing = [name for name in METADATA if not package.get(name)]
    require(not missing, path, f"Cargo.toml has no {', '.join(missing)}")
    require(1 <= len(package["keywords"]) <= 5 and len(package["categories"]) <= 5, path, "too many keywords or categories")
    # Everything that the sources include is in the package.
    for name, content in files.items():
        for included in re.findall(rb'include_(?:str|bytes)!\("([^"]+)"\)', content) if name.endswith(".rs") else []:
            there = (pathlib.PurePosixPath("/") / name).parent / included.decode()
            plain = str(pathlib.Path(str(there)).resolve()).lstrip("/")
            require(plain in files, path, f"{name} includes {plain}, which is not in the package")
    print(f"{path.name}: {len(files)} files, {path.stat().st_size / 1000:.0f} kB")


def check_sdist() -> None:
    path = ROOT / "target" / "packages" / f"prsl-{VERSION}.tar.gz"
    files = read(path)
    check_files(path, files, OF_SDIST)
    metadata = email.parser.Parser().parsestr(files["PKG-INFO"].decode())
    expected = {"Name": "prsl", "Version": VERSION, "License-Expression": "MIT OR Apache-2.0", "Requires-Python": ">=3.11"}
    for name, value in expected.items():
        require(metadata[name] == value, path, f"{name} is {metadata[name]}, expected {value}")
    for name in ("Summary", "Keywords", "Classifier", "License-File", "Description-Content-Type"):
        require(bool(metadata[name]), path, f"the metadata has no {name}")
    for name in ("python/prsl/py.typed", "python/prsl/__init__.py", "crates/prsl-python/src/lib.rs", "crates/prsl/src/lib.rs"):
        require(name in files, path, f"{name} is missing")
    print(f"{path.name}: {len(files)} files, {path.stat().st_size / 1000:.0f} kB")


def check_files(path: pathlib.Path, files: dict[str, bytes], allowed: set[str]) -> None:
    strange = sorted({name.split("/")[0] for name in files} - allowed)
    require(not strange, path, f"unexpected files: {', '.join(strange)}")
    for name in LICENSES:
        require(files.get(name) == (ROOT / name).read_bytes(), path, f"{name} is missing or differs")
    unwanted = [name for name in files if re.search(r"__pycache__|\.(so|pyc|snap\.new|pending-snap|orig~)$", name)]
    require(not unwanted, path, f"left-overs: {', '.join(unwanted)}")
    require(path.stat().st_size <= MAX_BYTES, path, f"{path.stat().st_size} bytes, more than {MAX_BYTES}")


def check_citation() -> None:
    [version] = re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M)
    require(version == VERSION, ROOT / "CITATION.cff", f"version {version}, and Cargo.toml has {VERSION}")


def read(path: pathlib.Path) -> dict[str, bytes]:
    """The files of an archive, without its top folder."""
    require(path.exists(), path, "not there")
    with tarfile.open(path) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        return {member.name.split("/", 1)[1]: archive.extractfile(member).read() for member in members}  # type: ignore[union-attr]


def require(holds: bool, path: pathlib.Path, problem: str) -> None:
    if not holds:
        sys.exit(f"{path.relative_to(ROOT)}: {problem}")


if __name__ == "__main__":
    main(sys.argv[1:])

#!/usr/bin/env python3
"""Builds all that a release has, into a folder; nothing is uploaded.

    python3 release.py v0.1.0          for a tag at HEAD, which CHANGELOG.md is headed by
    python3 release.py --dry-run       for the tree as it is

Archives and wheels of all platforms, the source distribution, an SBOM for each platform
(CycloneDX), SHA256SUMS, and notes.md, the text of the release. Needs Go. --platforms
linux-amd64,windows-amd64 builds these only.
"""
import argparse
import hashlib
import json
import re
import subprocess
import tempfile
import zipfile
from pathlib import Path

import backend


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=backend.ROOT, check=True, stdout=subprocess.PIPE).stdout.decode().strip()


def sbom(platform, program):
    """The modules in a program, as the program itself has them."""
    lines = [line.split("\t")[1:] for line in backend.go("version", "-m", str(program.resolve())).splitlines()[1:]]
    parts = [{"type": "library", "name": m[1], "version": m[2], "purl": f"pkg:golang/{m[1]}@{m[2]}"} for m in lines if m[0] == "dep"]
    parts.append({"type": "library", "name": "std", "version": backend.go("env", "GOVERSION").strip()})
    top = {"type": "application", "name": "specmatch", "version": backend.version(), "licenses": [{"license": {"id": "BSD-3-Clause"}}],
           "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(program.read_bytes()).hexdigest()}]}
    return json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": top}, "components": parts}, indent=1) + "\n"


def build(platform, out):
    name = f"specmatch-{backend.version()}-{'-'.join(platform)}"
    with tempfile.TemporaryDirectory() as folder:
        program = backend.binary(platform, folder)
        backend.wheel(platform, program, out)
        (out / f"{name}.cdx.json").write_text(sbom(platform, program), "utf-8")
        files = {program.name: program.read_bytes(), "LICENSE": (backend.ROOT / "LICENSE").read_bytes(), "NOTICES": backend.notices(platform).encode(),
                 **{page: (backend.ROOT / "specmatch/cmd/specmatch" / page).read_bytes()
                    for page in ("README.md", "guide.md", "reference.md", "evidence.md")}}
    if platform[0] != "windows":
        return backend.archive(out / f"{name}.tar.gz", {f"{name}/{n}": data for n, data in files.items()})
    with zipfile.ZipFile(out / f"{name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        for n, data in sorted(files.items()):
            z.writestr(zipfile.ZipInfo(f"{name}/{n}"), data, zipfile.ZIP_DEFLATED)


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("tag", nargs="?")
    flags.add_argument("--dry-run", action="store_true")
    flags.add_argument("--out", type=Path, default=Path("dist"))
    flags.add_argument("--platforms", default=",".join("-".join(p) for p in backend.PLATFORMS))
    o = flags.parse_args()
    platforms = [tuple(p.split("-")) for p in o.platforms.split(",")]
    if unknown := [p for p in platforms if p not in backend.PLATFORMS]:
        flags.error(f"unknown platforms: {unknown}")
    if not o.dry_run:
        if o.tag != f"v{backend.version()}":
            flags.error(f"tag {o.tag}: CHANGELOG.md is headed by {backend.version()}")
        if o.tag not in git("tag", "--points-at", "HEAD").split() or git("status", "--porcelain"):
            flags.error(f"tag {o.tag} is not at HEAD, or the tree has changes")
    o.out.mkdir(parents=True, exist_ok=True)
    if any(o.out.iterdir()):
        flags.error(f"{o.out} is not empty")
    for platform in platforms:
        build(platform, o.out)
    backend.build_sdist(o.out)
    notes = re.split(r"^## .*\n", (backend.ROOT / "CHANGELOG.md").read_text("utf-8"), flags=re.M)[1].strip()
    sums = "".join(f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.name}\n" for p in sorted(o.out.iterdir()))
    (o.out / "notes.md").write_text(f"# specmatch {backend.version()}\n\n{notes}\n", "utf-8")
    (o.out / "SHA256SUMS").write_text(sums, "utf-8")
    print(sums, end="")


if __name__ == "__main__":
    main()

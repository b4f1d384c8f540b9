"""Builds the wheels and the source distribution: the backend of pyproject.toml (PEP 517), and
what release.py calls. Needs Go, and no C compiler. The same source gives the same bytes."""
import base64
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sysconfig
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE / "go" if (HERE / "go").is_dir() else HERE.parents[1]  # of the Go module; a source distribution has it in go
PROGRAM = "./specmatch/cmd/specmatch"
PLATFORMS = {  # GOOS, GOARCH: the wheel's platforms; the program is static, so that any C library will do
    ("linux", "amd64"): "manylinux_2_17_x86_64.musllinux_1_1_x86_64",
    ("linux", "arm64"): "manylinux_2_17_aarch64.musllinux_1_1_aarch64",
    ("darwin", "amd64"): "macosx_12_0_x86_64",
    ("darwin", "arm64"): "macosx_12_0_arm64",
    ("windows", "amd64"): "win_amd64",
}
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text("utf-8"))["project"]
PACKAGE = PROJECT["name"].replace("-", "_")  # as it is imported, and in the names of files


def version():
    """That of the newest heading of CHANGELOG.md, and of the binary."""
    number, unreleased = re.search(r"^## (\S+)( \(unreleased\))?", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M).groups()
    return number + (".dev0" if unreleased else "")


def go(*arguments, platform=None):
    env = os.environ | {"CGO_ENABLED": "0"} | (dict(zip(("GOOS", "GOARCH"), platform)) if platform else {})
    return subprocess.run(["go", *arguments], cwd=ROOT, env=env, check=True, stdout=subprocess.PIPE).stdout.decode()


def packages(platform):
    """What go list says of the packages of the program."""
    decoder, text = json.JSONDecoder(), go("list", "-deps", "-json=Dir,Module,GoFiles,SFiles,HFiles,EmbedFiles,IgnoredGoFiles,IgnoredOtherFiles", PROGRAM, platform=platform).strip()
    while text:
        package, end = decoder.raw_decode(text)
        if "Module" in package:
            yield package
        text = text[end:].lstrip()


def modules(platform):
    """The other modules in the program: path, version, folder."""
    return sorted({(m["Path"], m["Version"], m["Dir"]) for p in packages(platform) if not (m := p["Module"]).get("Main")})


def notices(platform):
    """The licences of the other modules."""
    return "\n".join(f"== {path} {v}\n\n{f.read_text('utf-8')}" for path, v, folder in modules(platform)
                     for f in sorted(Path(folder).iterdir()) if re.match(r"(?i)(licen[sc]e|notice|copying)", f.name))


def binary(platform, folder):
    path = Path(folder) / ("specmatch.exe" if platform[0] == "windows" else "specmatch")
    link = f"-s -w -buildid= -X github.com/specmatch/specmatch/specmatch/cli.release={version()}"
    go("build", "-trimpath", "-buildvcs=false", "-ldflags", link, "-o", str(path.resolve()), PROGRAM, platform=platform)
    return path


def metadata():
    head = {"Metadata-Version": "2.4", "Name": PROJECT["name"], "Version": version(), "Summary": PROJECT["description"],
            "License-Expression": PROJECT["license"], "License-File": "LICENSE", "Requires-Python": PROJECT["requires-python"]}
    lines = [f"{k}: {v}" for k, v in head.items()] + [f"Requires-Dist: {d}" for d in PROJECT["dependencies"]]
    for extra, dependencies in PROJECT["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}"] + [f"Requires-Dist: {d}; extra == '{extra}'" for d in dependencies]
    lines += [f"Project-URL: {k}, {v}" for k, v in PROJECT["urls"].items()] + ["Description-Content-Type: text/markdown"]
    return "\n".join(lines) + "\n\n" + (HERE / PROJECT["readme"]).read_text("utf-8")


def wheel(platform, program, folder):
    """Writes the wheel of a platform with its program, and returns its name."""
    tags, stem = PLATFORMS.get(platform, re.sub(r"\W", "_", sysconfig.get_platform())), f"{PACKAGE}-{version()}"
    about = "Wheel-Version: 1.0\nGenerator: specmatch\nRoot-Is-Purelib: false\n" + "".join(f"Tag: py3-none-{t}\n" for t in tags.split("."))
    files = {f"{PACKAGE}/{p.name}": p.read_bytes() for p in (HERE / "src" / PACKAGE).iterdir() if p.suffix == ".py" or p.name == "py.typed"}
    files |= {f"{stem}.data/scripts/{program.name}": program.read_bytes(), f"{stem}.dist-info/METADATA": metadata().encode(), f"{stem}.dist-info/WHEEL": about.encode(),
              f"{stem}.dist-info/licenses/LICENSE": (ROOT / "LICENSE").read_bytes(), f"{stem}.dist-info/licenses/NOTICES": notices(platform).encode()}
    digest = {name: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode() for name, data in files.items()}
    record = "".join(f"{name},sha256={digest[name]},{len(files[name])}\n" for name in sorted(files))
    files[f"{stem}.dist-info/RECORD"] = (record + f"{stem}.dist-info/RECORD,,\n").encode()
    name = f"{stem}-py3-none-{tags}.whl"
    with zipfile.ZipFile(Path(folder) / name, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        for path in sorted(files, key=lambda f: (".dist-info" in f, f)):
            entry = zipfile.ZipInfo(path)
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
            entry.external_attr = (0o100755 if "/scripts/" in path else 0o100644) << 16
            z.writestr(entry, files[path])
    return name


def archive(path, files):
    """Writes a .tar.gz of names with contents; what has no ending may be executed."""
    with open(path, "wb") as f, gzip.GzipFile("", "wb", 9, f, 0) as packed, tarfile.open(fileobj=packed, mode="w") as t:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(files[name]), 0o755 if name.endswith("/specmatch") else 0o644
            t.addfile(entry, io.BytesIO(files[name]))


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    platform = tuple(go("env", "GOOS", "GOARCH").split())
    with tempfile.TemporaryDirectory() as folder:
        return wheel(platform, binary(platform, folder), wheel_directory)


def build_sdist(sdist_directory, config_settings=None):
    stem = f"{PACKAGE}-{version()}"
    files = {f"go/{name}": ROOT / name for name in ("go.mod", "go.sum", "LICENSE", "CHANGELOG.md")} | {"LICENSE": ROOT / "LICENSE"}
    files |= {name: HERE / name for name in ("pyproject.toml", "backend.py", "README.md")}
    files |= {f"src/{PACKAGE}/{p.name}": p for p in (HERE / "src" / PACKAGE).iterdir() if p.is_file()}
    for platform in PLATFORMS:
        for package in packages(platform):
            if package["Module"].get("Main"):
                paths = [Path(package["Dir"]) / name for key, names in package.items() if key.endswith("Files") for name in names]
                files |= {f"go/{p.relative_to(ROOT).as_posix()}": p for p in paths}
    archive(Path(sdist_directory) / f"{stem}.tar.gz", {f"{stem}/{name}": p.read_bytes() for name, p in files.items()} | {f"{stem}/PKG-INFO": metadata().encode()})
    return f"{stem}.tar.gz"

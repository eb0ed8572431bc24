"""Use a bundle (docs/offline.md) as the rig's only package source: see what is missing, prove it, make it apt's.

Runs on the rig as root with the system's Python (3.10 or newer, standard library only) and prints one JSON object. Its
one argument is JSON: do (`look` changes nothing, `use`), folder (the bundle's place on the rig), manifest (hash of the
one that is asked for) and wishes (the role variables).
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

LABEL = "gpu-rig bundle"
"""What the Release file says; the role nvidia_driver asks for its packages by it."""
LISTS = Path("/var/lib/apt/lists")
SPARE_BYTES = 500_000_000
"""Installing takes room, too."""
SMALL_BYTES = 20_000_000
"""Files up to here travel together."""
REMEDY = "Make the bundle again where there is a network"


def run(*argv: str, timeout_s: int = 300) -> tuple[int, str]:
    """Exit status and output of a command, in the C locale."""
    env = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s, env=env, check=False)
    return done.returncode, done.stdout + (done.stderr if done.returncode else "")


def sha256_of(path: Path) -> str:
    """The hash of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while data := stream.read(1 << 20):
            digest.update(data)
    return digest.hexdigest()


# --- does the bundle fit?


def platform(root: Path = Path("/")) -> dict[str, str]:
    """What this rig is."""
    pairs = (line.partition("=") for line in (root / "etc/os-release").read_text(encoding="utf-8").splitlines())
    release = {key: value.strip('"') for key, _, value in pairs}
    return {
        "id": release.get("ID", ""),
        "version": release.get("VERSION_ID", ""),
        "architecture": run("dpkg", "--print-architecture")[1].strip(),
        "python": "{}.{}".format(*sys.version_info[:2]),
    }


def platform_refusal(made_for: dict[str, str], rig: dict[str, str]) -> str:
    """Why packages or wheels of the bundle would not run here."""
    if made_for == rig:
        return ""
    words = "{id} {version} {architecture} with Python {python}"
    return (
        f"The bundle is for {words.format(**made_for)}, and this rig is {words.format(**rig)}. Make one through a rig "
        "of this kind."
    )


def chosen(manifest: dict[str, Any], wishes: dict[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """The parts of the bundle that the wishes need; or what it lacks."""
    system = manifest["system"]
    parts, lacks = [system], []
    absent = sorted(set(wishes["packages"]) - set(system["packages"]))
    lacks += [f"the packages {', '.join(absent)}"] if absent else []
    driver = next((part for part in manifest["drivers"] if is_driver(part, wishes["driver"])), None)
    if wishes["driver"] and driver is None:
        asked = wishes["driver"]
        named = " ".join(filter(None, [asked["branch"], asked["version"], f"({asked['flavour']}, {asked['modules']})"]))
        has = ", ".join(f"{part['driver']} ({part['flavour']}, {part['modules']})" for part in manifest["drivers"])
        lacks.append(f"the driver {named}; it has {has}")
    for version in wishes["toolkits"]:
        part = next((part for part in manifest["toolkits"] if part["version"] == version), None)
        has = ", ".join(part["version"] for part in manifest["toolkits"])
        parts, lacks = ([*parts, part], lacks) if part else (parts, [*lacks, f"CUDA {version}; it has {has}"])
    torch = next((part for part in manifest["torch"] if is_torch(part, wishes["torch"])), None)
    if wishes["torch"] and torch is None:
        asked = wishes["torch"]
        has = ", ".join(f"{part['version']}+{part['build']}" for part in manifest["torch"]) or "none"
        with_extra = f" with {', '.join(asked['extra'])}" if asked["extra"] else ""
        lacks.append(f"PyTorch {asked['version']} (build {asked['build']}){with_extra}; it has {has}")
    source = next((part for part in manifest["gpu_burn"] if part["commit"] == wishes["gpu_burn"]), None)
    if wishes["gpu_burn"] and source is None:
        lacks.append(f"gpu-burn at {wishes['gpu_burn']}")
    lacks += ["the container toolkit (container_toolkit_install)"] if wishes["container_toolkit"] else []
    parts += [part for part in (driver, torch, source) if part is not None]
    return parts, f"The bundle lacks {'; and '.join(lacks)}. {REMEDY}." if lacks else ""


def is_driver(part: dict[str, Any], asked: dict[str, Any]) -> bool:
    """Whether a part is the driver that is asked for."""
    same = bool(asked) and all(part[key] == asked[key] for key in ("branch", "flavour", "modules"))
    return same and asked["version"] in ("", part["driver"], part["package_version"])


def is_torch(part: dict[str, Any], asked: dict[str, Any]) -> bool:
    """Whether a part is the PyTorch that is asked for, by its version or chosen for the same driver."""
    if not asked or not set(asked["extra"]) <= set(part["extra"]):
        return False
    if "auto" in (asked["version"], asked["build"]):
        wish = (asked["version"], asked["build"], asked["driver"])
        return bool(wish == (part["asked_version"], part["asked_build"], part["driver"]))
    return bool((asked["version"], asked["build"]) == (part["version"], part["build"]))


# --- what is here?


def installed() -> dict[str, str]:
    """Every installed package with its version."""
    rows = run("dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Abbrev}\n")[1].splitlines()
    return {row.split()[0]: row.split()[1] for row in rows if row.split()[-1].endswith("i")}


def needed(manifest: dict[str, Any], parts: list[dict[str, Any]], packages: dict[str, str]) -> list[dict[str, Any]]:
    """The files that this rig takes from the bundle: all of its parts but packages that it has in that version."""
    names = {name for part in parts for name in part["files"]} | {manifest["lists"]}
    files = [file for file in manifest["files"] if file["path"] in names]
    return [file for file in files if not file["package"] or packages.get(file["package"]) != file["version"]]


def is_here(folder: Path, file: dict[str, Any]) -> bool:
    """Whether a file is there in its size; its hash is looked at when it comes."""
    path = folder / file["path"]
    return path.is_file() and path.stat().st_size == file["size"]


def lists_are_read(folder: Path, lists: Path) -> bool:
    """Whether apt has read the bundle's package list as it is: the Release file that it keeps names its hash."""
    release, read = folder / "Release", lists / f"{str(folder).replace('/', '_')}_._Release"
    both = release.is_file() and read.is_file()
    return both and release.read_bytes() == read.read_bytes()


def look(asked: dict[str, Any], lists: Path = LISTS) -> dict[str, Any]:
    """Whether the bundle fits, which of its files are still to come, and whether apt has it."""
    folder = Path(asked["folder"])
    answer: dict[str, Any] = {"seen": False, "refusal": "", "small": [], "large": [], "bytes": 0, "to_use": False}
    place = folder / "bundle.json"
    if not place.is_file() or sha256_of(place) != asked["manifest"]:
        return answer
    answer["seen"] = True
    manifest = json.loads(place.read_text(encoding="utf-8"))
    parts, lack = chosen(manifest, asked["wishes"])
    answer["refusal"] = platform_refusal(manifest["platform"], platform()) or lack
    if answer["refusal"]:
        return answer
    wanted = needed(manifest, parts, installed())
    missing = [file for file in wanted if not is_here(folder, file)]
    answer["small"] = [file["path"] for file in missing if file["size"] <= SMALL_BYTES]
    answer["large"] = [file["path"] for file in missing if file["size"] > SMALL_BYTES]
    answer["bytes"] = sum(file["size"] for file in missing)
    free = shutil.disk_usage(folder).free
    if missing and free < answer["bytes"] + SPARE_BYTES:
        megabytes = round((answer["bytes"] + SPARE_BYTES) / 1e6)
        answer["refusal"] = (
            f"{folder} on the rig has {free / 1e6:.0f} MB free, and the bundle needs {megabytes} MB there. Make room."
        )
    answer["to_use"] = bool(missing) or marked(folder) != mark(manifest) or not lists_are_read(folder, lists)
    return answer


# --- make it apt's


def mark(manifest: dict[str, Any]) -> str:
    """What tells one bundle from another."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def marked(folder: Path) -> str:
    """The mark of the bundle that is in use."""
    place = folder / "in_use"
    return place.read_text(encoding="ascii") if place.is_file() else ""


def damaged(folder: Path, files: list[dict[str, Any]]) -> list[str]:
    """The files that have other bytes than the manifest says; they are removed, so that the next run brings them."""
    wrong = [
        file["path"]
        for file in files
        if not is_here(folder, file) or sha256_of(folder / file["path"]) != file["sha256"]
    ]
    for path in wrong:
        (folder / path).unlink(missing_ok=True)
    return wrong


def unpack(folder: Path) -> None:
    """Unpack the repositories of sources, each whole or not at all, and let every program read what came."""
    for archive in sorted(folder.glob("git/*.tar")):
        place = archive.with_suffix("")
        if not place.is_dir():
            part = archive.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            subprocess.run(["tar", "-xf", str(archive), "--no-same-owner", "-C", str(part)], check=True)
            part.replace(place)
    for name in ("debs", "wheels", "git", "lists"):
        if (folder / name).is_dir():
            (folder / name).chmod(0o755)  # whatever umask sudo gave; apt reads as a user of its own


def write_index(folder: Path, manifest: dict[str, Any]) -> None:
    """Write Packages and Release for the packages that are here, and the list that names them to apt."""
    text = (folder / manifest["lists"]).read_text(encoding="utf-8")
    here = [
        record
        for record in text.rstrip("\n").split("\n\n")
        if (found := re.search(r"^Filename: (\S+)", record, re.MULTILINE)) and (folder / found.group(1)).is_file()
    ]
    index = ("\n\n".join(here) + "\n").encode()
    digest = f" {hashlib.sha256(index).hexdigest()} {len(index)} Packages"
    (folder / "sources.list.d").mkdir(exist_ok=True)
    for name, data in (
        ("Packages", index),
        ("Release", f"Origin: gpu-rig\nLabel: {LABEL}\nSHA256:\n{digest}\n".encode()),
        ("sources.list.d/bundle.list", f"deb [trusted=yes] file:{folder} ./\n".encode()),
    ):
        part = folder / f"{name}.part"
        part.write_bytes(data)
        part.chmod(0o644)  # whatever umask sudo gave
        part.replace(folder / name)


def trial_refusal(folder: Path, wanted: list[str]) -> str:
    """Why apt could not install the wished packages from the bundle alone; a simulation, with lists of its own."""
    with tempfile.TemporaryDirectory(prefix="gpu-rig-offline-") as scratch:
        Path(scratch).chmod(0o755)  # apt reads as a user of its own
        Path(scratch, "partial").mkdir()
        words = [
            "apt-get", "-q", "-o", f"Dir::State::Lists={scratch}", "-o", "Dir::Etc::SourceList=/dev/null",
            "-o", f"Dir::Etc::SourceParts={folder}/sources.list.d", "-o", "Dir::Cache::pkgcache=",
            "-o", "Dir::Cache::srcpkgcache=",
        ]  # fmt: skip
        rc, text = run(*words, "update")
        if rc == 0:
            rc, text = run(*words, "-s", "--no-install-recommends", "install", *wanted)
    if rc == 0:
        return ""
    lines = [line.strip() for line in text.splitlines() if " : " in line or line.startswith("E:")]
    return (
        f"The bundle's packages do not fit this rig's: {' '.join(lines)[-400:]} {REMEDY}: through a rig whose packages "
        "are as new as this one's."
    )


def use(asked: dict[str, Any]) -> dict[str, Any]:
    """Prove what came, and make it a package source; apt's settings are the role's to write."""
    folder = Path(asked["folder"])
    manifest = json.loads((folder / "bundle.json").read_text(encoding="utf-8"))
    parts, _ = chosen(manifest, asked["wishes"])
    wrong = damaged(folder, needed(manifest, parts, installed()))
    if wrong:
        return {
            "refusal": f"The bundle is damaged: {', '.join(wrong[:3])}{' and more' if len(wrong) > 3 else ''} "  # noqa: PLR2004
            "came with other bytes than its manifest says. Compare the files on the "
            "disk with the manifest, and fill the bundle again where there is a network."
        }
    unpack(folder)
    write_index(folder, manifest)
    toolkits = [f"cuda-toolkit-{version.replace('.', '-')}" for version in asked["wishes"]["toolkits"]]
    refusal = trial_refusal(folder, [*asked["wishes"]["packages"], *toolkits])
    if not refusal:
        (folder / "in_use").write_text(mark(manifest), encoding="ascii")
    return {"refusal": refusal}


if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    json.dump(look(request) if request["do"] == "look" else use(request), sys.stdout)

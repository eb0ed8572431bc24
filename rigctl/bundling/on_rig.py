"""What the source rig does for a bundle: resolve packages as a bare rig would install them, fetch, pack, clean up.

Sent to the rig over standard input and run there as root with the system's Python (3.10 or newer, standard library and
the roles' own scripts only). Its one argument is a request as JSON, its answer one JSON object on standard output.
Everything happens in a scratch folder with apt's own state: the rig's packages, lists and settings stay as they are.
"""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote

SCRATCH_PREFIX = "rigctl-bundle-"
OFFLINE_SETTINGS = Path("/etc/apt/apt.conf.d/95-gpu-rig-offline")
OWN_PINS = "gpu-rig-nvidia-driver"
ABANDONED_S = 24 * 3600
"""A scratch folder that old is of a filling that was killed."""
UPDATE_TIMEOUT_S = 900
FETCH_TIMEOUT_S = 3000


class Refused(Exception):
    """Why the request cannot be met, and what to do."""

    def __init__(self, said: str, remedy: str) -> None:
        super().__init__(said)
        self.said = said
        self.remedy = remedy


def run(*argv: str, timeout_s: int = 120, cwd: Path | None = None) -> tuple[int, str, str]:
    """Exit status, output and complaints of a command, in the C locale."""
    env = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s, env=env, cwd=cwd, check=False)
    return done.returncode, done.stdout, done.stderr


def complaint(text: str) -> str:
    """The errors among apt's words, in one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join([line for line in lines if line.startswith(("E:", "Err:"))][-4:] or lines[-4:])


def platform() -> dict[str, str]:
    """What the rig is: packages and wheels fit rigs that are the same."""
    pairs = (line.partition("=") for line in Path("/etc/os-release").read_text(encoding="utf-8").splitlines())
    release = {key: value.strip('"') for key, _, value in pairs}
    return {
        "id": release.get("ID", ""),
        "version": release.get("VERSION_ID", ""),
        "architecture": run("dpkg", "--print-architecture")[1].strip(),
        "python": "{}.{}".format(*sys.version_info[:2]),
    }


# --- apt with a state of its own


def write_sources(scratch: Path, cuda: dict[str, str]) -> None:
    """Copy the rig's own package sources, with the CUDA repository of the inventory in the place of any other."""
    sources = import_module("sources")  # of the role cuda, sent along
    parts = scratch / "etc" / "sources.list.d"
    parts.mkdir(parents=True)
    strays = sources.look(cuda["line"], ["/etc/apt/sources.list.d/nvidia-cuda.list"])
    pattern = re.compile(strays["pattern"])
    left_out = {"/etc/apt/sources.list.d/nvidia-cuda.list", *strays["files"]}
    for path in sources.files(
        "etc/apt/sources.list", "etc/apt/sources.list.d/*.list", "etc/apt/sources.list.d/*.sources"
    ):
        if str(path) in left_out:
            continue
        if str(path) in strays["mixed"]:
            raise Refused(
                f"{path} names the CUDA repository beside others",
                "take that part out on the rig by hand: the inventory names the repository itself (cuda_repo_line)",
            )
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        kept = [line for line in lines if str(path) not in strays["lists"] or not pattern.search(line)]
        (parts / path.name).write_text("\n".join(kept) + "\n", encoding="utf-8")
    line = cuda["line"]
    if cuda["key"]:
        key = scratch / "etc" / Path(cuda["key_path"]).name
        key.write_bytes(base64.b64decode(cuda["key"]))
        line = line.replace(cuda["key_path"], str(key))
    (parts / "nvidia-cuda.list").write_text(line + "\n", encoding="utf-8")


def prepare(cuda: dict[str, str]) -> Path:
    """Make the scratch folder, have apt read the sources into it, and let apt see a bare rig from here on.

    What no source offers cannot be carried: it is taken to be on every rig of this kind.
    """
    if OFFLINE_SETTINGS.is_file() and "Dir::Etc" in OFFLINE_SETTINGS.read_text(encoding="utf-8"):
        raise Refused(
            "this rig takes its packages from a bundle itself (base_offline_bundle)",
            "name a rig that reaches the package sources: --from RIG",
        )
    scratch = Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX, dir="/var/tmp"))
    scratch.chmod(0o755)  # apt reads as a user of its own
    for left in scratch.parent.glob(f"{SCRATCH_PREFIX}*"):
        if time.time() - left.stat().st_mtime > ABANDONED_S:
            shutil.rmtree(left)
    for folder in ("state/lists/partial", "cache/archives/partial", "dpkg/info", "dpkg/updates", "debs"):
        (scratch / folder).mkdir(parents=True)
    write_sources(scratch, cuda)
    (scratch / "dpkg" / "status").touch()
    (scratch / "apt.conf").write_text(
        f'Dir::State "{scratch}/state"; Dir::State::status "{scratch}/dpkg/status"; Dir::Cache "{scratch}/cache";\n'
        f'Dir::Etc::SourceList "/dev/null"; Dir::Etc::SourceParts "{scratch}/etc/sources.list.d";\n'
        'APT::Get::Fix-Broken "true"; APT::Install-Recommends "false";\n'
        'APT::Get::Always-Include-Phased-Updates "true";\n',
        encoding="utf-8",
    )
    use(scratch)
    rc, out, err = run("apt-get", "-q", "-o", "APT::Update::Error-Mode=any", "update", timeout_s=UPDATE_TIMEOUT_S)
    if rc:
        shutil.rmtree(scratch)
        raise Refused(
            f"the rig's package sources cannot be read: {complaint(err or out)}",
            "correct them on the rig (sudo apt-get update), or name a rig that reaches them: --from RIG",
        )
    offered = set(run("apt-cache", "pkgnames")[1].split())
    records = Path("/var/lib/dpkg/status").read_text(encoding="utf-8").split("\n\n")
    own = [one.strip("\n") for one in records if one.strip() and name_of(one) not in offered]
    (scratch / "dpkg" / "status").write_text("\n\n".join(own) + "\n", encoding="utf-8")
    return scratch


def use(scratch: Path) -> None:
    """Let apt and dpkg see the scratch folder's world from here on."""
    os.environ["APT_CONFIG"] = str(scratch / "apt.conf")
    os.environ["DPKG_ADMINDIR"] = str(scratch / "dpkg")


def name_of(record: str) -> str:
    """The package that a paragraph of dpkg's status is about."""
    return record.lstrip("\n").partition("\n")[0].removeprefix("Package: ").strip()


# --- resolving


def is_offered(package: str) -> bool:
    """Whether a source has the package."""
    return "Candidate: (none)" not in (found := run("apt-cache", "policy", package)[1]) and bool(found)


def closure(words: list[str], pins: str, scratch: Path) -> list[tuple[str, str]]:
    """Every package, with its version, that a bare rig would install for these words of `apt-get install`."""
    with tempfile.TemporaryDirectory(dir=scratch) as parts:
        Path(parts).chmod(0o755)
        for path in Path("/etc/apt/preferences.d").glob("*"):
            if path.is_file() and path.name != OWN_PINS:
                shutil.copy(path, parts)
        Path(parts, OWN_PINS).write_text(pins + "\n", encoding="utf-8")
        preferences = f"Dir::Etc::PreferencesParts={parts}"
        rc, out, err = run("apt-get", "-y", "-qq", "--print-uris", "-o", preferences, "install", *words)
    if rc:
        raise Refused(
            f"the rig's package sources cannot give {' '.join(words)}: {complaint(err or out)}",
            "correct the package sources on the rig, or the role variables in the inventory",
        )
    files = re.findall(r"^'[^']+' (\S+)_([^_\s]+)_[^_\s]+\.deb ", out, re.MULTILINE)
    return [(name, unquote(version)) for name, version in files]


def resolve_driver(wish: dict[str, Any], kernels: list[str], scratch: Path) -> dict[str, Any]:
    """The driver that the role would take from these sources, with headers and compilers for every kernel."""
    offer = import_module("offers").look_at_offers(wish)  # of the role nvidia_driver, sent along
    asked = f"driver {wish['branch']} ({wish['flavour']})"
    if offer["refusal"]:
        raise Refused(f"{asked}: {offer['refusal']}", "correct the role variables in the inventory, then bundle again")
    extra = []
    for kernel in offer["kernels"]:
        words = [f"linux-headers-{kernel['release']}"]
        words += [f"gcc-{kernel['compiler']}"] if kernel["compiler"] else []
        extra += [word for word in words if wish["modules"] == "dkms" and is_offered(word)]
    for release in kernels if wish["modules"] == "dkms" else ():
        if not is_offered(f"linux-headers-{release}"):
            raise Refused(
                f"--kernel {release}: no package source of this rig has linux-headers-{release}",
                "name a kernel that the archive still has (uname -r on the rigs), or update theirs",
            )
        extra.append(f"linux-headers-{release}")
    words = [word for word in offer["transaction"] if not word.endswith("-")]
    return {
        "package_version": offer["target"],
        "driver": offer["target_driver"],
        "source": offer["source"],
        "kernels": sorted({word.removeprefix("linux-headers-") for word in extra if word.startswith("linux-headers-")}),
        "packages": closure(sorted({*words, *extra}), offer["preferences"], scratch),
    }


def resolve_toolkit(version: str, scratch: Path) -> dict[str, Any]:
    """A CUDA toolkit."""
    package = f"cuda-toolkit-{version.replace('.', '-')}"
    if not is_offered(package):
        raise Refused(
            f"no package source has CUDA {version}", "correct cuda_version, or cuda_repo_line, in the inventory"
        )
    return {"packages": closure([package], "", scratch)}


def describe(packages: set[tuple[str, str]]) -> list[dict[str, Any]]:
    """What the package lists say of each package: its paragraph, size and hash."""
    if not packages:
        return []
    words = [f"{name}={version}" for name, version in sorted(packages)]
    shown = run("apt-cache", "show", *words)[1]
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for record in shown.split("\n\n"):
        fields = dict(re.findall(r"^([A-Z][\w-]*): *(.*)$", record, re.MULTILINE))
        key = (fields.get("Package", ""), fields.get("Version", ""))
        if key in packages and key not in found and "SHA256" in fields:
            found[key] = {
                "package": key[0],
                "version": key[1],
                "architecture": fields["Architecture"],
                "size": int(fields["Size"]),
                "sha256": fields["SHA256"],
                "record": record.strip("\n"),
            }
    lost = sorted(packages - set(found))
    if lost:
        name, version = lost[0]
        raise Refused(f"the package lists do not say the hash of {name} {version}", "add a source that does")
    return list(found.values())


def resolve(request: dict[str, Any]) -> dict[str, Any]:
    """Everything that rigs with these wishes install, as packages."""
    scratch = prepare(request["cuda"])
    try:
        wanted = [word for word in request["system"] if word not in request["optional"] or is_offered(word)]
        answer: dict[str, Any] = {
            "scratch": str(scratch),
            "platform": platform(),
            "libc": os.confstr("CS_GNU_LIBC_VERSION"),
            "system": wanted,
            "system_packages": closure(wanted, "", scratch),
            "drivers": [resolve_driver(wish, request["kernels"], scratch) for wish in request["drivers"]],
            "toolkits": [resolve_toolkit(version, scratch) for version in request["toolkits"]],
        }
        parts = [answer["system_packages"], *(part["packages"] for part in (*answer["drivers"], *answer["toolkits"]))]
        answer["described"] = describe({package for part in parts for package in part})
    except BaseException:
        shutil.rmtree(scratch)
        raise
    return answer


# --- bringing things together


def sha256_of(path: Path) -> str:
    """The hash of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while data := stream.read(1 << 20):
            digest.update(data)
    return digest.hexdigest()


def fetch(request: dict[str, Any]) -> dict[str, Any]:
    """Fetch some packages into the scratch folder: package=version → the file's place."""
    scratch = Path(request["scratch"])
    use(scratch)
    folder = scratch / "debs"
    rc, out, err = run("apt-get", "-q", "download", *request["packages"], timeout_s=FETCH_TIMEOUT_S, cwd=folder)
    if rc:
        raise Refused(
            f"packages cannot be fetched: {complaint(err or out)}",
            "see that the rig reaches its package sources, then bundle again: what is there stays there",
        )
    places = {}
    for path in folder.glob("*.deb"):
        name, version, _ = path.name.split("_")
        places[f"{name}={unquote(version)}"] = str(path)
    return {"places": places}


def pack_git(request: dict[str, Any]) -> dict[str, Any]:
    """Pack the history of one commit of a repository that the rig reaches by a path."""
    packed = Path(request["scratch"], "history.tar")
    history = import_module("history")  # sent along
    try:
        history.pack(request["repo"], request["commit"], packed)
    except history.HistoryMissing as error:
        raise Refused(
            f"commit {request['commit']} of {request['repo']} cannot be packed: {error}",
            "correct gpu_burn_repo or gpu_burn_commit in the inventory",
        ) from error
    return {"place": str(packed), "size": packed.stat().st_size, "sha256": sha256_of(packed)}


def list_wheels(request: dict[str, Any]) -> dict[str, Any]:
    """The wheels of a folder on the rig."""
    folder = Path(request["folder"])
    wheels = [
        {"place": str(path), "name": path.name, "size": path.stat().st_size, "sha256": sha256_of(path)}
        for path in sorted(folder.glob("*.whl"))
    ]
    if not wheels:
        raise Refused(f"pytorch_wheelhouse: {folder} on the rig holds no wheels", "correct it in the inventory")
    return {"wheels": wheels}


def forget(request: dict[str, Any]) -> dict[str, Any]:
    """Remove files of the scratch folder, or with no names all of it."""
    scratch = Path(request["scratch"])
    for name in request["places"]:
        if Path(name).is_relative_to(scratch):
            Path(name).unlink()
    if not request["places"] and scratch.name.startswith(SCRATCH_PREFIX):
        shutil.rmtree(scratch)
    return {}


DOES = {"resolve": resolve, "fetch": fetch, "pack_git": pack_git, "list_wheels": list_wheels, "forget": forget}

if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    try:
        answered = DOES[asked["do"]](asked)
    except Refused as refused:
        answered = {"error": refused.said, "hint": refused.remedy}
    json.dump(answered, sys.stdout)

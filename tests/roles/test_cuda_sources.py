"""What `cuda` finds of other installations in apt's configuration, and which toolkits apt knows; gpu-burn's stubs."""

import base64
import importlib.util

import pytest

from .roles_page import ROLES


def script(name, role="cuda"):
    spec = importlib.util.spec_from_file_location(f"{role}_{name}", ROLES / role / "files" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sources, look, burn_look = script("sources"), script("look"), script("look", "gpu_burn")

OWN = "deb [trusted=yes] file:///srv/cuda /"
NVIDIA = "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2204/x86_64"
UBUNTU = "deb http://archive.example/ubuntu jammy main"


@pytest.mark.parametrize(
    ("text", "how"),
    [
        (f"deb {NVIDIA}/ /\n", "whole"),
        (f"deb [signed-by=/usr/share/keyrings/cuda.gpg] {NVIDIA} /\n# deb {UBUNTU}\n", "whole"),
        (f"Types: deb\nURIs: {NVIDIA}/\nSuites: /\n", "whole"),
        ("deb [signed-by=/k.gpg] file:///srv/cuda/ /\n", "whole"),
        (f"{UBUNTU}\ndeb {NVIDIA}/ /\n", "lines"),
        (f"URIs: http://archive.example/ubuntu\n\nURIs: {NVIDIA}\n", "lines"),
        (f"# deb {NVIDIA}/ /\n{UBUNTU}\n", ""),
        (UBUNTU, ""),
        ("deb https://example.org/compute/cuda-like /\n", ""),
        ("", ""),
    ],
)
def test_lists(text, how):
    assert sources.read_list(text, OWN) == how


def packet(tag, body, *, new=False):
    """One OpenPGP packet."""
    if new:
        return bytes([0xC0 | tag, len(body)]) + body
    return bytes([0x80 | tag << 2 | 1]) + len(body).to_bytes(2, "big") + body


def key(issuer, *, new=False):
    return packet(6, b"\x04" * 40, new=new) + packet(13, b"cudatools") + packet(2, b"\x00" * 9 + issuer, new=new)


OLD, NEW = sources.RETIRED_KEY, bytes.fromhex("a4b469963bf863cc")


@pytest.mark.parametrize("new", [False, True])
def test_the_retired_key_is_known_by_its_signature(tmp_path, new):
    path = tmp_path / "7fa2af80.gpg"
    path.write_bytes(key(OLD, new=new))
    assert sources.is_retired_key(path)
    text = base64.encodebytes(key(OLD, new=new)).decode()
    path.write_text(
        f"-----BEGIN PGP PUBLIC KEY BLOCK-----\nVersion: 1\n\n{text}=abcd\n-----END PGP PUBLIC KEY BLOCK-----\n"
    )
    assert sources.is_retired_key(path)


@pytest.mark.parametrize("data", [key(NEW), key(OLD) + key(NEW), b"", b"no key"])
def test_other_keyrings_stay(tmp_path, data):
    path = tmp_path / "cuda-archive-keyring.gpg"
    path.write_bytes(data)
    assert not sources.is_retired_key(path)


def test_packages_that_bring_lists_and_keys():
    status = "cuda-keyring ii \ncuda-repo-ubuntu2204-11-7-local ii \ncuda-toolkit-11-7 ii \ncuda-repo-old un \n"
    assert sources.read_packages(status) == ["cuda-keyring", "cuda-repo-ubuntu2204-11-7-local"]


def test_toolkits_are_in_order_and_nothing_else_is_one():
    names = "cuda-toolkit-12-2\ncuda-toolkit-11-7\ncuda-toolkit-11-7-config-common\ncuda-toolkit-11-10\ncuda-toolkit\n"
    assert look.read_toolkits(names) == ["11.7", "11.10", "12.2"]
    assert look.read_toolkits("") == []


@pytest.mark.parametrize(
    ("candidate", "toolkits"),
    [
        ("11.8.89~11.8.0-5~deb12u1", ["11.8"]),
        ("11.5.1-1ubuntu1", ["11.5"]),
        ("12.0.140~12.0.1-4build4", ["12.0"]),
        ("(none)", []),
    ],
)
def test_the_distribution_s_toolkit_is_read_from_its_candidate(candidate, toolkits):
    policy = f"nvidia-cuda-toolkit:\n  Installed: 11.2.2-3\n  Candidate: {candidate}\n  Version table:\n"
    assert look.toolkit_of(look.read_candidate(policy)) == toolkits
    assert look.read_candidate("") == ""


@pytest.mark.parametrize("folder", ["lib64", "lib/x86_64-linux-gnu", "lib"])
def test_the_toolkit_s_stubs_are_found_where_nvidia_and_debian_put_them(tmp_path, folder):
    assert burn_look.stubs(tmp_path) == str(tmp_path / "lib64" / "stubs")
    (tmp_path / folder / "stubs").mkdir(parents=True)
    (tmp_path / folder / "stubs" / "libcuda.so").touch()
    assert burn_look.stubs(tmp_path) == str(tmp_path / folder / "stubs")

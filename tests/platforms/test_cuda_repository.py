"""NVIDIA's repository is named by the rig's own system."""

import jinja2
import pytest
import yaml

from tests.roles.roles_page import ROLES

DEFAULTS = yaml.safe_load((ROLES / "cuda" / "defaults" / "main.yml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("facts", "folder"),
    [
        ({}, "ubuntu2204"),
        ({"distribution": "Ubuntu", "distribution_version": "22.04"}, "ubuntu2204"),
        ({"distribution": "Ubuntu", "distribution_version": "24.04"}, "ubuntu2404"),
        ({"distribution": "Debian", "distribution_version": "12.12", "distribution_major_version": "12"}, "debian12"),
    ],
)
def test_the_repository_of_a_system(facts, folder):
    render = jinja2.Environment(undefined=jinja2.ChainableUndefined, autoescape=False).from_string  # noqa: S701 - no page
    system = render(DEFAULTS["cuda_repo_system"]).render(ansible_facts=facts)
    line = render(DEFAULTS["cuda_repo_line"]).render(cuda_repo_system=system)
    assert line.split()[2] == f"https://developer.download.nvidia.com/compute/cuda/repos/{folder}/x86_64/"

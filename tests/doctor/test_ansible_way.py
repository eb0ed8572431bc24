"""What Ansible says of each rig, and how it is put beside rigctl's own way in."""

from __future__ import annotations

import pytest

from rigctl.doctor.ansible_way import AnsibleReply, read_answers
from rigctl.doctor.finding import Finding, RigExamination
from rigctl.doctor.rig import ANSIBLE, STEPS, _Looked, _with_ansible
from rigctl.model.rig import Login
from tests.fleet.rigs import rig

ROOT = AnsibleReply(reached=True, is_root=True, said="")
REFUSED = AnsibleReply(reached=False, is_root=False, said="ops@192.0.2.1: Permission denied (publickey).")
NO_SUDO = AnsibleReply(reached=True, is_root=False, said="Missing sudo password")
SAID = """\
rig1 | CHANGED | rc=0 >>
Warning: a banner of the rig
0

rig2 | UNREACHABLE! => {
    "changed": false,
    "msg": "Task failed: Failed to connect to the host via ssh: ssh: connect to host 192.0.2.1 port 22: Timed out",
    "unreachable": true
}
rig3 | FAILED! => {
    "changed": false,
    "msg": "Task failed: Missing sudo password"
}
rig-4.example | FAILED | rc=1 >>
sudo: unable to resolve host rig4
ops is not in the sudoers file.
rig5 | CHANGED | rc=0 >>
1000
"""


def test_every_form_is_read() -> None:
    answers = read_answers(SAID)
    assert answers["rig1"] == ROOT
    assert answers["rig2"] == AnsibleReply(
        reached=False, is_root=False, said="ssh: connect to host 192.0.2.1 port 22: Timed out"
    )
    assert answers["rig3"] == NO_SUDO
    assert answers["rig-4.example"].said == "ops is not in the sudoers file."
    assert answers["rig5"] == AnsibleReply(reached=True, is_root=False, said="1000")
    assert len(answers) == 5


def broken_at(step: str) -> _Looked:
    """What rigctl's own way shows that ends at `step`; whole with an empty one."""
    end = STEPS.index(step) if step else len(STEPS)
    passed = tuple(Finding("rig1", what, ok=True, found="yes") for what in STEPS[:end])
    return _Looked((*passed, Finding("rig1", step, ok=False, found="no", fix="do")) if step else passed, broken=step)


def put_together(step: str, reply: AnsibleReply, **login: object) -> RigExamination:
    one = rig("rig1", Login.model_validate({"address": "192.0.2.1", **login}))
    return _with_ansible(one, broken_at(step), reply, None)


def todo(seen: RigExamination) -> list[str]:
    return [finding.what for finding in seen.findings if not finding.ok]


def test_both_ways_work() -> None:
    seen = put_together("", ROOT)
    assert todo(seen) == []
    assert [finding.what for finding in seen.findings][:5] == ["reachable", "host key", "login", "sudo", ANSIBLE]


@pytest.mark.parametrize("reply", [REFUSED, NO_SUDO])
def test_only_rigctls_own_way_works(reply: AnsibleReply) -> None:
    seen = put_together("", reply)
    assert todo(seen) == [ANSIBLE]
    (finding,) = [finding for finding in seen.findings if not finding.ok]
    assert reply.said in finding.found
    assert finding.fix == "run: ansible -i inventory rig1 --become -m ansible.builtin.raw -a 'id -u' -vvv"


def test_only_ansibles_way_works_and_one_line_says_why() -> None:
    seen = put_together("login", ROOT, openssh_only=("CertificateFile ~/.ssh/ops-cert.pub",))
    assert todo(seen) == ["login"]
    fix = next(finding.fix for finding in seen.findings if not finding.ok)
    assert fix.startswith("Ansible's ssh gets in, rigctl's own way does not: it knows no CertificateFile ~/.ssh/ops-")
    assert fix.endswith("; do")


@pytest.mark.parametrize(
    ("step", "reply"), [("reachable", REFUSED), ("login", REFUSED), ("login", NO_SUDO), ("sudo", NO_SUDO)]
)
def test_one_cause_is_said_once(step: str, reply: AnsibleReply) -> None:
    seen = put_together(step, reply)
    assert todo(seen) == [step]
    assert [(one.what, one.because) for one in seen.left_out] == [(ANSIBLE, step)]


def test_sudo_and_ansibles_ssh_are_two_troubles() -> None:
    assert todo(put_together("sudo", REFUSED)) == ["sudo", ANSIBLE]

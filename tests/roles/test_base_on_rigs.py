"""The roles `base` and `cpu_burn` on a simulated rig: what they set, take back, and finish."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rigctl import sim

from .roles_page import ROOT

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(600)]
BIN = Path(sys.executable).parent
ARCHIVE = "file:///srv/rigsim/ubuntu"
DETECTED = """\
#!/bin/sh
printf '#----cut here----\\n# Chip drivers\\nnct6775\\n#----cut here----\\n'
"""


@pytest.fixture(scope="module")
def rig(tmp_path_factory):
    state = sim.up(sim.UpOptions(count=1, directory=tmp_path_factory.mktemp("base") / "state", training=False))
    try:
        yield state
    finally:
        sim.down(state.directory)


def on_rig(rig, command):
    """Run a command as root."""
    ssh = ["ssh", "-F", rig.ssh_config, "rig1", "sudo", "sh", "-s"]
    done = subprocess.run(ssh, input=command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def provision(rig, tags, **variables):
    """The rig's outcome with role variables of its own."""
    own = rig.inventory / "host_vars" / "rig1" / "software.yml"
    own.write_text(json.dumps(variables), encoding="utf-8")
    words = [
        BIN / "rigctl",
        "provision",
        "-i",
        rig.inventory,
        "--runs",
        rig.directory / "runs",
        "--tags",
        tags,
        "--json",
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    return json.loads(done.stdout)["rigs"][0]


def test_1_settings_come_and_go(rig):
    own = {
        "base_proxy": "http://proxy.example:3128",
        "base_ntp_servers": ["time.example"],
        "base_apt_mirrors": [{"from": f"{ARCHIVE}/2022 jammy-updates", "to": f"{ARCHIVE}/2023 jammy-updates"}],
    }
    assert provision(rig, "base", **own)["state"] == "changed"
    assert 'Acquire::http::Proxy "http://proxy.example:3128";' in on_rig(rig, "apt-config dump")
    assert "https_proxy=http://proxy.example:3128" in on_rig(rig, "sudo env")
    assert "NTP=time.example" in on_rig(rig, "cat /etc/systemd/timesyncd.conf.d/90-gpu-rig.conf")
    assert f"{ARCHIVE}/2023 jammy-updates" in on_rig(rig, "apt-cache policy | cat; cat /etc/apt/sources.list")
    assert provision(rig, "base", **own)["changed"] == 0

    assert provision(rig, "base")["state"] == "changed"
    assert "proxy.example" not in on_rig(rig, "apt-config dump; sudo env; cat /etc/environment /etc/sudoers.d/*")
    assert "time.example" not in on_rig(rig, "cat /etc/systemd/timesyncd.conf.d/*")
    assert provision(rig, "base")["changed"] == 0


def test_2_an_interrupted_installation_is_finished(rig):
    on_rig(rig, "dpkg --unpack /srv/rigsim/pool/debian/dmidecode_*.deb")
    assert provision(rig, "base")["changed"] == 1
    assert on_rig(rig, "dpkg --audit") == ""


def test_3_a_wrong_clock_is_refused(rig):
    outcome = provision(rig, "base", base_max_clock_error_s=-1)
    assert outcome["state"] == "failed"
    assert "The rig's clock is" in outcome["message"]
    assert "timedatectl set-ntp true" in outcome["message"]


def test_4_a_proxy_with_a_password_is_refused(rig):
    outcome = provision(rig, "base", base_proxy="http://me:secret@proxy.example:3128")
    assert outcome["state"] == "failed"
    assert "without user and password" in outcome["message"]


def test_5_where_the_processor_has_a_sensor_nothing_is_detected(rig):
    assert provision(rig, "cpu_burn")["state"] == "changed"
    assert "The processor's sensor is there" in on_rig(rig, "cat /var/lib/gpu-rig/sensors-detected")
    assert provision(rig, "cpu_burn")["changed"] == 0


def test_6_where_it_has_none_the_drivers_of_what_is_found_are_loaded_at_boot(rig):
    on_rig(
        rig,
        f"cat > /usr/local/sbin/sensors-detect <<'END'\n{DETECTED}END\n"
        "chmod +x /usr/local/sbin/sensors-detect; rm /var/lib/gpu-rig/sensors-detected\n"
        "mkdir -p /tmp/none; mount --bind /tmp/none /sys/class/hwmon",
    )
    assert provision(rig, "cpu_burn")["state"] == "changed"
    assert on_rig(rig, "tail -n 1 /etc/modules-load.d/gpu-rig-sensors.conf") == "nct6775"
    assert "modprobe nct6775: exit status 1" in on_rig(rig, "cat /var/lib/gpu-rig/sensors-detected")
    assert provision(rig, "cpu_burn")["changed"] == 0

"""What the driver's modules were loaded with, as modprobe's settings say."""

from pathlib import Path

from rigctl.sim.machine.hardware.rigsim import module
from rigctl.sim.machine.hardware.rigsim.paths import Paths


def test_the_last_word_counts_and_other_modules_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.conf").write_text("options nvidia NVreg_EnableGpuFirmware=1\noptions nvidia_drm modeset=1\n")
    (tmp_path / "b.conf").write_text("# options nvidia X=1\noptions nvidia NVreg_EnableGpuFirmware=0\n")
    assert module.options("nvidia", (tmp_path,)) == {"NVreg_EnableGpuFirmware": "0"}


def test_parameters_are_shown_where_the_driver_shows_them(paths: Paths, tmp_path: Path) -> None:
    folder = tmp_path / "modprobe.d"
    folder.mkdir()
    paths.proc_version.parent.mkdir(parents=True)
    params = paths.proc_version.parent / "params"
    module.show_parameters(paths, (folder,))
    assert "EnableGpuFirmware: 18\n" in params.read_text()
    (folder / "a.conf").write_text("options nvidia NVreg_EnableGpuFirmware=0\noptions nvidia_uvm uvm_disable_hmm=1\n")
    module.show_parameters(paths, (folder,))
    assert "EnableGpuFirmware: 0\n" in params.read_text()
    assert (paths.sys / "module/nvidia_uvm/parameters/uvm_disable_hmm").read_text() == "Y\n"

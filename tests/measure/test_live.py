import io

from rich.console import Console

from rigctl.cli.live import line, table, watch
from rigctl.measure.progress import Progress
from rigctl.model.reading import GpuSample, Sample


def progress() -> Progress:
    shown = Progress(["rig1", "rig2"])
    shown.step("rig1", "gpu_burn", 60)
    gpus = (
        GpuSample(uuid="GPU-a", slot=1, temp_c=58.0, power_w=441.4),
        GpuSample(uuid="GPU-b", slot=2, temp_c=55.0, power_w=None),
    )
    sample = Sample(seq=1, t_mono_s=1, t_wall_s=1, boot_id="b", step="gpu_burn", gpus=gpus, wall_power_w=1021.0)
    shown.sample("rig1", sample, {"GPU-a": 26584.0})
    return shown


def test_a_rigs_line_says_step_time_cards_and_wall():
    assert line(progress().snapshot()[0]) == (
        "rig1: gpu_burn (0:00 of 1:00) · slot1 58 °C 441 W 26,584 Gflop/s · slot2 55 °C · wall 1,021 W"
    )


def test_what_is_not_known_is_left_empty_not_zero():
    assert line(progress().snapshot()[1]) == "rig2: waiting (0:00)"


def test_the_table_has_a_row_per_card():
    console = Console(file=io.StringIO(), width=120)
    console.print(table(progress()))
    drawn = console.file.getvalue()
    assert "0:00 of 1:00" in drawn
    assert "slot1" in drawn
    assert "26,584" in drawn
    assert "slot2" in drawn


def test_the_same_step_again_does_not_restart_its_clock():
    shown = progress()
    before = shown.snapshot()[0].step_started
    shown.step("rig1", "gpu_burn", 60)
    assert shown.snapshot()[0].step_started == before


def test_where_there_is_no_terminal_each_new_step_is_a_line():
    console = Console(file=io.StringIO(), width=120)
    shown = progress()
    with watch(shown, console):
        shown.step("rig2", "facts")
    text = console.file.getvalue()
    assert "rig1: gpu_burn" in text
    assert "rig2: facts" in text

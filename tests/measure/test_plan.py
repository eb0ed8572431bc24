from rigctl.measure.claim import Claim
from rigctl.measure.plan import build_plan, has_load, history_limits, step_seconds
from rigctl.model.baseline import Baseline
from rigctl.model.reading import DriverFacts, Facts, GpuFacts
from rigctl.model.spec import (
    LimitsSpec,
    PartsSpec,
    ProfileSpec,
    RigSpec,
    SoftwareSpec,
    TrainingSpec,
    WallMeterSpec,
)

TRAINING = TrainingSpec(
    device="cuda",
    model="gpt2_medium",
    seq_len=1024,
    micro_batch=2,
    grad_accum=4,
    dtype="bf16",
    warmup_steps=10,
    measured_steps=20,
    min_tokens_per_s=6702,
)


def spec(**changes) -> RigSpec:
    whole = RigSpec(
        rig_class="dual_3090ti",
        parts=PartsSpec(
            gpu_count=2,
            gpu_model="NVIDIA GeForce RTX 3090 Ti",
            min_gpu_memory_mib=24564,
            pcie_gen_under_load=4,
            pcie_width_under_load=8,
        ),
        limits=LimitsSpec(
            max_settled_gpu_temp_c=65, guard_max_gpu_temp_c=85, min_power_share_of_limit=0.9, min_burn_gflops=25000
        ),
        wall_meter=WallMeterSpec(form="tasmota", url="http://192.0.2.9/cm?cmnd=Status%208"),
        training=TRAINING,
        software=SoftwareSpec(
            driver_branch="515",
            cuda_version="11.7",
            torch_version="auto",
            torch_build="auto",
            gpu_burn_dir="/opt/gpuburn",
            torch_venv="/opt/rigctl/torch",
        ),
    )
    return whole.model_copy(update=changes)


def profile(**changes) -> ProfileSpec:
    whole = ProfileSpec(
        idle_seconds=5, cpu_burn_seconds=10, gpu_burn_seconds=60, all_burn_seconds=20, train=True, sample_hz=2
    )
    return whole.model_copy(update=changes)


def facts(*uuids: str) -> Facts:
    gpus = tuple(
        GpuFacts(index=i, slot=i + 1, uuid=uuid, pci_bus_id=f"00000000:0{i + 1}:00.0", name="x")
        for i, uuid in enumerate(uuids)
    )
    return Facts(boot_id="b", hostname="rig1", driver=DriverFacts(loaded="515.105.01"), gpus=gpus)


def test_steps_run_in_order_and_a_zero_leaves_a_step_out():
    assert list(step_seconds(spec(), profile())) == ["idle", "cpu_burn", "gpu_burn", "all_burn", "train"]
    assert list(step_seconds(spec(), profile(cpu_burn_seconds=0, train=False))) == ["idle", "gpu_burn", "all_burn"]


def test_training_is_expected_to_take_its_tokens_at_the_floor():
    tokens = 1024 * 2 * 4 * 30
    assert step_seconds(spec(), profile())["train"] == 15 + tokens / 6702


def test_a_spec_without_training_has_no_training_step():
    assert "train" not in step_seconds(spec(training=None), profile())


def test_idle_alone_is_no_load():
    idle = profile(cpu_burn_seconds=0, gpu_burn_seconds=0, all_burn_seconds=0, train=False)
    assert not has_load(spec(), idle)
    assert has_load(spec(), profile())


def test_the_plan_names_the_cards_that_must_answer_and_the_meter():
    plan = build_plan(
        "run1",
        spec(),
        profile(),
        facts("GPU-a", "GPU-b"),
        Claim("alice@desk", ignore_lock=True),
    )
    assert (plan["asked_by"], plan["evict_users"], plan["ignore_lock"]) == ("alice@desk", False, True)
    assert plan["ramp_s"] == 5
    assert plan["expected_gpus"] == ["GPU-a", "GPU-b"]
    assert plan["wall_meter"] == {"form": "tasmota", "url": "http://192.0.2.9/cm?cmnd=Status%208"}
    assert plan["max_gpu_temp_c"] == 85
    assert plan["controller_lost_s"] == 60
    by_name = {step["name"]: step for step in plan["steps"]}
    assert by_name["all_burn"]["loads"] == ["cpu", "gpu"]
    assert by_name["train"]["training"]["device"] == "cuda"


def test_a_meter_without_an_address_is_not_asked():
    meter = WallMeterSpec(form="tasmota")
    plan = build_plan("run1", spec(wall_meter=meter), profile(), facts("GPU-a"), Claim())
    assert plan["wall_meter"] is None


def test_a_card_may_become_15_degrees_hotter_than_it_ever_settled_at_here():
    settled = {"GPU-b": 58.0, "GPU-gone": 50.0}
    ended = "2026-11-30T01:00:00Z"
    known = Baseline(run_id="r", profile="smoke", ended_at=ended, facts=facts("GPU-b"), runs=2, settled_max_c=settled)
    assert history_limits(facts("GPU-a", "GPU-b"), known) == {"GPU-b": 73.0}
    assert history_limits(facts("GPU-a"), None) == {}

"""Bad readings of the checks that are judged on something else than figures: names, words, ids, times, events."""

from __future__ import annotations

import json

from rigctl.model.reading import DriverFacts, FabricManagerFacts, KernelMessage, PairFacts, TimeSyncFacts

from . import healthy as h
from .healthy_compute import diagnosis
from .test_fail import tools


def with_place(**changes):
    return h.facts(places=(h.place(0), h.place(1, **changes)))


def named(name):
    return {"facts": h.facts(gpus=(h.gpu(0), h.gpu(1, name=name, missing={"name": name})))}


def samples(change):
    """The healthy samples with `change(number, sample) → updates` made to each."""
    return {"samples": tuple(s.model_copy(update=change(n, s)) for n, s in enumerate(h.samples()))}


def backwards(number, sample):
    """The rig's monotonic clock jumps back by ten seconds in the middle of the GPU burn, and goes on from there."""
    return {"t_mono_s": sample.t_mono_s - (10 if number >= 40 else 0)}


NVML_DEAD = DriverFacts(loaded="515.105.01", library="515.105.01", nvml_error="Unknown Error")
OWN = {
    "measure.reached": [{"unreached": "no route to host"}],
    "measure.telemetry": [
        {"samples": ()},
        {"samples": h.samples()[:1]},
        samples(backwards),
        samples(lambda _n, _s: {"t_mono_s": 1000.0}),
        samples(lambda n, _s: {"seq": 0 if n < 9 else n}),
        {"samples": tuple(reversed(h.samples()))},
    ],
    "measure.left_as_found": [
        {"logs": h.with_logs(restored__json=text)}
        for text in ("N/A", "", "[]", "null", '{"restored": null, "failed": []}', '{"restored": []}')
    ],
    "measure.second_opinion": [
        {"logs": h.without_logs("dcgm.json")},
        *({"logs": h.with_logs(dcgm__json=text)} for text in ("", "N/A", "{}", "[]", '{"installed": "N/A"}')),
        *({"logs": h.with_logs(dcgm__json=diagnosis(word, word))} for word in ("N/A", "[Unknown Error]", "ERR!", "-7")),
        {"logs": h.with_logs(dcgm__json=json.dumps({"installed": True, "output": "Error: ERR!"}))},
    ],
    "kernel.same_boot": [
        {"boot_id_after": None},
        {"samples": (), "boot_id_after": None},
        samples(lambda n, s: {"boot_id": s.boot_id if n < 40 else "N/A"}),
    ],
    "kernel.xid": [
        {"kernel_read": False},
        {"kernel": (KernelMessage(t_wall_s=h.T0, message="NVRM: Xid: N/A"),)},
        {"kernel": (KernelMessage(t_wall_s=h.T0, message="NVRM: Xid (PCI:ERR!): [Unknown Error]"),)},
    ],
    "kernel.time_sync": [{"facts": h.facts(time_sync=None)}, {"facts": h.facts(time_sync=TimeSyncFacts())}],
    "software.driver_version": [
        {"facts": h.facts(driver=DriverFacts(loaded=loaded, library=library))}
        for loaded, library in ((None, "515.105.01"), ("515.105.01", None), ("N/A", "N/A"), ("ERR!", "515.105.01"))
    ],
    "software.torch": [{"facts": h.facts(tools=tools(torch=one))} for one in (None, "", "N/A", "[Unknown Error]")],
    "software.cuda_toolkit": [{"facts": h.facts(tools=tools(nvcc=one))} for one in (None, "", "N/A", "-1")],
    "software.gpu_burn_build": [
        {"facts": h.facts(tools=tools(gpu_burn_build=one))}
        for one in ({}, {"commit": "3ead140"}, {"commit": "3ead140", "compute_capabilities": "N/A"})
    ],
    "identity.cards": [
        {"facts": h.facts(places=())},
        {"facts": with_place(listed=False)},
        {"facts": with_place(root_port=None, below=None, root_path=None)},
        {"facts": h.facts(gpus=(h.gpu(0), h.gpu(1, uuid=h.UUIDS[0])))},
        {"facts": h.facts(gpus=(h.gpu(0), h.gpu(1, uuid="N/A")))},
    ],
    "identity.machine": [
        {"facts": h.facts(memory_modules=None, memory_mib=0)},
        {"facts": h.facts(disks=None)},
        {"facts": h.facts(network=None)},
        {"facts": h.facts(cpu_model="")},
    ],
    "identity.modules": [{"facts": h.facts(modules=None)}],
    "topology.gpu_count": [
        {"facts": h.facts(gpus=(), driver=NVML_DEAD)},
        {"facts": h.facts(gpus=())},
        {"facts": h.facts(gpus=(h.gpu(0),))},
        {"facts": h.facts(gpus=(h.gpu(0), h.gpu(1), h.gpu(1, index=2, slot=3, uuid="GPU-3")))},
    ],
    "topology.gpu_model": [named(name) for name in ("", "N/A", "[Unknown Error]", "ERR!")],
    "topology.fabric_manager": [
        {"facts": h.facts(fabric_manager=one)}
        for one in (
            None,
            FabricManagerFacts(reason="ERR!"),
            FabricManagerFacts(installed=True, version="515.105.01"),
            FabricManagerFacts(installed=True, state="N/A", version="515.105.01"),
            *(FabricManagerFacts(installed=True, state="active (running)", version=word) for word in (None, "N/A")),
        )
    ],
    "topology.p2p_access": [
        {"facts": h.facts(pairs=pairs)}
        for pairs in (
            (),
            (PairFacts(slots=(1, 2)),),
            *((PairFacts(slots=(1, 2), read=word, write="OK"),) for word in ("N/A", "U", "[Unknown Error]", "ERR!")),
        )
    ],
    "thermals.guard": [
        {"events": ()},
        {"events": h.events()[:-1]},
        {"events": h.guard_stop("gpu_burn", 25.0)},
        {"events": h.guard_stop("gpu_burn", 25.0, reason="N/A", found="ERR!", limit=None)},
    ],
}
SPECS = {"topology.fabric_manager": h.spec(parts={"links": (), "nvswitch_links": 18})}
"""Where a check has something to judge on other boards only."""

"""Programs that the agent carries for steps of a plan, each run by a Python of the rig outside of the agent.

They are taken out together, so one may import another (`from .other import …`); of the agent they import nothing.
Each is called with `--arguments JSON --out FILE` and writes one JSON object to FILE, atomically and once, when it is
done: its readings, or `{"error", "hint"}`.
"""

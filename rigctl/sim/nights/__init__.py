"""Nights of whole fleets in process: the physics of simulated rigs, the guard's own decisions, the suite's own checks.

A night is one acceptance of one rig, from facts to verdicts, in a fraction of a second: no container, no clock. What a
rig shows follows from the same physics and the same faults as on a simulated rig; what the guard decides, and what the
verdicts are, comes from the code that runs in a real acceptance. For benches that need thousands.
"""

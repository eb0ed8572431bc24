"""What lies on a simulated rig: hardware, shims, image and boot."""

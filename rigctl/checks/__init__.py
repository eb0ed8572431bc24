"""Reading × spec → verdict: pure functions, one module per subject."""

"""Long work on all rigs, readings brought home."""

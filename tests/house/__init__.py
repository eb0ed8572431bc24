"""The house keeps its own rules."""

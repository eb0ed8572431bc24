"""rigctl: infrastructure as code for GPU rigs: provision, measure, verify, report."""

__version__ = "0.1.0"

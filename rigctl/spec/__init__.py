"""Specs as people work with them: drafted from a healthy rig's run, and shown with the source of each figure.

- `rows`: the table of figures that can be learned; a new limit is one row
- `parts`: what is built in, exactly as seen
- `learn`: runs of a healthy rig → a draft
- `draft`: the draft as a spec file
- `show`: a rig's whole spec, figure by figure
"""

from rigctl.spec.draft import as_yaml
from rigctl.spec.learn import Draft, Unfit, learn
from rigctl.spec.show import Shown, show, to_learn

__all__ = ["Draft", "Shown", "Unfit", "as_yaml", "learn", "show", "to_learn"]

"""Every night: which rigs are accepted when, carried out, and told in the morning."""

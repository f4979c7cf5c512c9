"""The parts of the protocol `focus`; `surgeval.protocols.focus` is the public face."""

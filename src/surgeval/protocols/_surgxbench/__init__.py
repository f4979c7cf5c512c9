"""The parts of protocol `surgxbench`."""

"""How a moment looks: anatomy, tissue, instruments, optics and corruptions, as pixels."""

"""One module per source format: its reader, and its writer where it has one."""

"""One module per source format (a package where it takes several): its reader, and its writer where it has one."""

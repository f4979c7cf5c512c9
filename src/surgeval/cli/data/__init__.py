"""`surgeval data …`: the group's commands, a module for each that is long."""

"""`surgeval questions …`: the group's commands, a module for each that is long."""

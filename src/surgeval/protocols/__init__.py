"""Protocols: each asks a model about a dataset, or scores what a model said, and leaves a run folder.

One package per protocol, all with the same rooms: `method` (reads like its paper), `result` (what is loaded from a
run), `tables`, `figures`, `page`, `command`, `demo`. `contract` says what the rest of surgeval expects of them,
`registry` which ones are installed.
"""

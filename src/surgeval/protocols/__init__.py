"""Protocols: each asks a model about a dataset, or scores what a model said, and leaves a run folder.

One package per protocol, with the same rooms: `method` (reads like its paper), `result` (what is loaded from a run),
`page` and `compare` in each; `tables`, `figures`, `evidence`, `verdict`, `command` and `demo` where it has them.
`contract` says what the rest of surgeval expects of them, `registry` which ones are installed.
"""

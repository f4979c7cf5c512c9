"""The annotation studio (`surgeval studio`): a web application over a log of operations.

`studio.store` is the way in for Python: `Database` opens a project, `reading` looks at it, `apply` edits it.
`studio.server` serves it, `studio.schema` says what may be labelled, `studio.identity` numbers tracks,
`studio.exchange` brings labels in and out.
"""

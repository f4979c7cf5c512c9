"""The annotation web application (`surgeval studio`). Nothing here yet; docs/architecture.md says what will live here."""

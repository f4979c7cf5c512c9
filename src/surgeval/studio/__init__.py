"""The annotation web application (`surgeval studio`); docs/architecture.md says what will live here."""

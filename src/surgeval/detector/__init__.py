"""Surgical triplet detectors; docs/architecture.md says what will live here."""

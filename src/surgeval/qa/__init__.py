"""Answer formats, choice parsing, judges, injection screening, gaze drawing, question making."""

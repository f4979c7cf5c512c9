"""FOCUS questions from the script: what may be asked of a scene, and the questions of a video."""

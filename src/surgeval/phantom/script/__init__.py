"""What happens in an operation: procedures, actions, tools, camera and gaze, moment by moment; the scene graph."""

"""Questions whose answers the script knows: FOCUS questions and clinical-intent items."""

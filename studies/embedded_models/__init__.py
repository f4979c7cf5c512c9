"""How the embedded models were made and examined: `python -m studies.embedded_models --help`.

Training needs torch and transformers (`surgeval[models]`) beside the phantom's renderer; it never renders a test video.
"""

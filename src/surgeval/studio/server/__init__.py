"""The studio's web server: reading and editing a project over HTTP, on this machine unless told otherwise."""

from surgeval.studio.server.app import build_app
from surgeval.studio.server.serve import Running, page_built, serve, set_schema

__all__ = ["Running", "build_app", "page_built", "serve", "set_schema"]

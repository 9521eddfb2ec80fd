"""The tool `web_fetch`: read a page of the web, or a file that was laid open, as somebody else's words.

Rules of this room: an address comes from a model, and a page may have told it to the model. So nothing is asked that
the guard has not vetted, nothing is read without a limit, and all that is told stands between marks that a page cannot
forge.
"""

from dragoman.tools.web.fetching import Settings, Web, web_fetch

__all__ = ["Settings", "Web", "web_fetch"]

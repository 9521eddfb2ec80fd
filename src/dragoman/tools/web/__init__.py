"""The tool `web_fetch`: read a web page, or a file in an allowed directory, as untrusted text.

The URL comes from a model, and a page may have suggested it to the model. So every request passes the address checks of
`http.guarded`, every read has a size limit, and the text of a page is put between markers that the page cannot forge.
"""

from dragoman.former_names import keep_parameters
from dragoman.tools.web.fetch import Settings, Web, web_fetch

keep_parameters(Web, "__init__", trust="ssl_context")

__all__ = ["Settings", "Web", "web_fetch"]

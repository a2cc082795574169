"""Sphinx settings of the site. `./dev docs` builds it into docs/site from the pages in docs/ and the headers' comments."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

project = "Palimpsest"
author = "the Palimpsest authors"
copyright = author
html_title = "Palimpsest"
extensions = ["myst_parser", "header_reference"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["site", "snippets"]
html_theme = "furo"
html_static_path = []
html_show_sphinx = False
html_copy_source = False

# Headings get the anchors that they have in the repository's viewer.
myst_heading_anchors = 4

highlight_language = "cpp"
# Links to sources lead out of the site.
suppress_warnings = ["myst.xref_missing", "myst.header", "ref.myst", "toc.not_included"]

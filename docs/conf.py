"""Sphinx settings of the site. `./dev docs` builds it into docs/site from the pages in docs/ and the headers' comments."""
import pathlib

project = "Palimpsest"
author = "The Palimpsest authors"
html_title = "Palimpsest"
extensions = ["myst_parser", "breathe"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["site"]
html_theme = "furo"
html_static_path = []
html_show_sphinx = False
html_copy_source = False

# Headings get the anchors that they have in the repository's viewer.
myst_heading_anchors = 4

breathe_projects = {"palimpsest": str(pathlib.Path(__file__).parent / "site/xml")}
breathe_default_project = "palimpsest"
breathe_default_members = ("members",)
breathe_show_include = False
breathe_order_parameters_first = False
primary_domain = "cpp"
highlight_language = "cpp"
cpp_id_attributes = ["PALIMPSEST_EXPORT"]
# Links to sources lead out of the site.
suppress_warnings = ["myst.xref_missing", "myst.header", "ref.myst", "toc.not_included"]

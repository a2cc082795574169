"""Sphinx settings of the site. `./dev docs` builds it into docs/site from the pages in docs/ and from the headers."""
import pathlib
import re
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
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
# Browsers do not let a page from a file read other files.
html_show_search_summary = False

# Headings get the anchors that they have in the repository's viewer.
myst_heading_anchors = 4

highlight_language = "cpp"
# Links to sources lead out of the site.
suppress_warnings = ["myst.xref_missing", "myst.header", "ref.myst", "toc.not_included"]


def complete_theme(app, exception):
    """Makes the files of Debian's furo readable from a disk, without a server.

    Its furo.js imports another script, which browsers refuse in a script that is no module. Joins both. Its style sheet
    refers to a file outside of the site, and it lacks the rule for readers whose system is dark. Completes it.
    """
    static = pathlib.Path(app.outdir) / "_static"
    script, style = static / "scripts/furo.js", static / "styles/furo.css"
    if exception is not None or not script.exists():
        return
    first, _, rest = script.read_text(encoding="utf-8").partition("\n")
    if first.startswith("import Gumshoe from "):
        script.write_text((static / "scripts/gumshoe-patched.js").read_text(encoding="utf-8") + rest, encoding="utf-8")
    text = style.read_text(encoding="utf-8")
    for line, path in re.findall(r'(@import (?:url\()?"?(/javascript/[^")]+)"?\)?;)', text):
        system = pathlib.Path("/usr/share") / path.lstrip("/")
        text = text.replace(line, system.read_text(encoding="utf-8") if system.exists() else "")
    dark = re.search(r'body\[data-theme="dark"\] (\{[^}]*\})', text)
    if dark and "prefers-color-scheme" not in text:
        text += f'@media (prefers-color-scheme: dark) {{ body:not([data-theme="light"]) {dark[1]} }}\n'
    style.write_text(text, encoding="utf-8")


def setup(app):
    app.connect("build-finished", complete_theme)

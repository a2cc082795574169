"""check_pages.py SITE PALIMPSEST_PLAN: opens pages of the site in headless Chromium.

Also opens the page that PALIMPSEST_PLAN writes to explain the plan of a program of 100,000 nodes. Opens each page at
the width of a desktop and of a phone, light and dark. Searches for names on the search page. Prints what is wrong and
exits non-zero if a page writes an error to the console, is wider than the window or not dark when it should be, if the
explaining page takes more than two seconds to open, or if a search finds nothing. Also reads all pages of the site: no
sentence may contain a table as text, or an element that HTML does not have, such as a template's argument.
"""
import html.parser
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

PAGES = ["index.html", "get-started.html", "concepts.html", "how-to.html", "tutorials/memory_budget.html",
         "reference/elementwise.html", "reference/tensors.html", "reference/networks.html", "examples.html",
         "operations.html", "benchmarks.html", "search.html"]
SIZES = {"desktop": (1300, 900), "phone": (375, 800)}
NAMES = ["embedding", "lstm", "mse", "conv2d", "stack", "squeeze", "load", "resume", "learning rate", "tutorial",
         "checkpoint", "scan", "hvp", "softmax", "dropout", "DataLoader", "BudgetError", "LossScaler", "einsum",
         "Runner"]
MOST_SECONDS = 2
NODES = 100_000
# Elements that reach beyond the right edge, unless something that scrolls holds them.
OVERFLOW = """(() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return "";
  const scrolls = e => e && (getComputedStyle(e).overflowX != "visible" || scrolls(e.parentElement));
  const wide = [...document.querySelectorAll("body *")].filter(
    e => e.getBoundingClientRect().right > width + 1 && !scrolls(e.parentElement));
  return document.documentElement.scrollWidth + " pixels wide: " +
    wide.slice(0, 3).map(e => e.tagName + "." + e.className + " " + e.textContent.slice(0, 40)).join("; ");
})()"""

IS_DARK = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every(part => part < 128)"


HTML = set("a article aside b body br button caption code col colgroup dd details div dl dt em figcaption figure footer"
           " form h1 h2 h3 h4 h5 h6 head header hr html i img input kbd label li link main meta nav noscript ol p path"
           " polyline line rect circle title pre script search section small span strong style sub summary sup svg symbol"
           " table tbody td th thead tr u ul use".split())


class Elements(html.parser.HTMLParser):
    """Finds elements that HTML does not have, and tables that are text."""

    def __init__(self):
        super().__init__()
        self.open, self.wrong = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in HTML:
            self.wrong.append(f"an element <{tag}>")
        self.open.append(tag)

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, text):
        if "|---" in text and not {"pre", "code", "script"} & set(self.open):
            self.wrong.append(f"a table as text: {text.strip()[:80]}")


def lost_forms(site):
    """What pages of the site show in another form than their sources meant."""
    for path in sorted(pathlib.Path(site).rglob("*.html")):
        elements = Elements()
        elements.feed(path.read_text(encoding="utf-8"))
        yield from (f"{path.relative_to(site)}: {problem}" for problem in elements.wrong)


class Browser:
    """A Chromium that takes commands of the DevTools protocol from a pipe."""

    def __init__(self, profile):
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if program is None:
            sys.exit("check_pages.py needs chromium")
        command_out, self.commands = os.pipe()
        self.answers, answer_in = os.pipe()

        def place_pipes():  # Chromium reads file 3 and writes file 4
            read, write = os.dup(command_out), os.dup(answer_in)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--hide-scrollbars",
             "--disable-dev-shm-usage", f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=place_pipes, close_fds=False)
        os.close(command_out)
        os.close(answer_in)
        self.rest, self.number, self.session, self.errors, self.loaded = b"", 0, None, [], False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")

    def read(self):
        while b"\0" not in self.rest:
            part = os.read(self.answers, 1 << 16)
            if not part:
                sys.exit("chromium ended")
            self.rest += part
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def note(self, message):
        method, given = message.get("method"), message.get("params", {})
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Runtime.exceptionThrown":
            details = given["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and given["type"] == "error":
            self.errors.append(" ".join(str(each.get("value", "")) for each in given["args"]))
        elif method == "Log.entryAdded" and given["entry"]["level"] == "error":
            self.errors.append(given["entry"]["text"] + " " + given["entry"].get("url", ""))

    def call(self, method, **given):
        self.number += 1
        message = {"id": self.number, "method": method, "params": given}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']}")
                return answer["result"]
            self.note(answer)

    def value(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def open(self, url):
        """Opens a page and waits until it has been painted. Returns the seconds that it took."""
        self.errors, self.loaded = [], False
        start = time.monotonic()
        failure = self.call("Page.navigate", url=url).get("errorText")
        if failure:
            self.errors.append(failure)
        while not self.loaded:
            self.note(self.read())
        self.call("Runtime.evaluate", awaitPromise=True, expression="new Promise(done => setTimeout(done, 0))")
        return time.monotonic() - start

    def processor_seconds(self):
        """Processor time of all processes of the browser so far."""
        ticks, ours = 0, {self.process.pid}
        for path in sorted(pathlib.Path("/proc").glob("[0-9]*/stat"), key=lambda path: int(path.parent.name)):
            try:
                fields = path.read_text(encoding="utf-8").rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            if int(path.parent.name) in ours or int(fields[1]) in ours:
                ours.add(int(path.parent.name))
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def look(self, size, scheme):
        width, height = SIZES[size]
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=size == "phone")
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def close(self):
        self.call("Browser.close")
        self.process.wait()


def write_explaining_page(program, folder):
    """Writes the page that explains the plan of a chain: values of the forward part, and adjoints that read them."""
    half = NODES // 2
    nodes = [{"name": "input", "inputs": [], "outputs": [4096], "cost": 0, "source": True}]
    nodes += [{"name": "forward", "inputs": [i], "outputs": [4096], "cost": 1e-6} for i in range(half)]
    nodes += [{"name": "backward", "inputs": [half + i, half - i], "outputs": [4096], "cost": 2e-6}
              for i in range(half)]
    graph = {"format": "palimpsest-graph", "version": 1, "name": "chain", "backward_begins": half + 1, "nodes": nodes,
             "targets": [2 * half]}
    (folder / "chain.json").write_text(json.dumps(graph), encoding="utf-8")
    subprocess.run([program, folder / "chain.json", "--budget", "50%", "--planner", "square_root", "--html",
                    folder / "chain.html"], check=True, stdout=subprocess.DEVNULL)
    return folder / "chain.html"


def hits(browser, site, name):
    """Number of search results for a name."""
    browser.open(f"{site}/search.html?q={name.replace(' ', '+')}")
    for _ in range(100):
        if browser.value("document.querySelectorAll('#search-results ul.search li').length"):
            break
        time.sleep(0.05)
    return browser.value("document.querySelectorAll('#search-results ul.search li').length")


def problems_of(browser, site, further):
    for size in SIZES:
        for scheme in ("light", "dark"):
            browser.look(size, scheme)
            for url in [f"{site}/{page}" for page in PAGES] + further:
                seconds = browser.open(url)
                where = f"{url.rpartition('/')[2]} ({size}, {scheme})"
                yield from (f"{where}: console: {error}" for error in browser.errors)
                if browser.value(IS_DARK) != (scheme == "dark"):
                    yield f"{where}: the background is not {scheme}"
                overflow = browser.value(OVERFLOW)
                if overflow:
                    yield f"{where}: {overflow}"
                if url in further:
                    before = browser.processor_seconds()
                    browser.open(url)
                    # On a machine that is busy with other work, the processor time says more.
                    work = browser.processor_seconds() - before
                    print(f"{where} opened in {seconds:.2f} s, with {work:.2f} s of processor time")
                    seconds = min(seconds, work)
                    if seconds > MOST_SECONDS:
                        yield f"{where}: took {seconds:.1f} s to open"
    browser.look("desktop", "light")
    for name in NAMES:
        if not hits(browser, site, name):
            yield f"search finds nothing for {name}"
        yield from (f"search for {name}: console: {error}" for error in browser.errors)


def main():
    site = pathlib.Path(sys.argv[1]).resolve().as_uri()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as profile:
        further = [write_explaining_page(sys.argv[2], pathlib.Path(folder)).as_uri()]
        browser = Browser(profile)
        wrong = list(problems_of(browser, site, further))
        browser.close()
    wrong += lost_forms(sys.argv[1])
    print(*wrong, sep="\n")
    print(f"{len(PAGES) + len(further)} pages and {len(NAMES)} searches: {len(wrong)} problems")
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())

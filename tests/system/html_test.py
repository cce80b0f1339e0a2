"""What the tests of the HTML report share: runs, pages, the documents in them."""

import json
import subprocess
from pathlib import Path

from sonde_test import BUILD, SOURCE, environment, run, sonde

WEB = SOURCE / "web"
SCREENS = BUILD / "screens"
LIMIT_BYTES = 3 << 20
PYTHON = environment(PYTHONPATH=BUILD / "python")


def node(*arguments, **options):
    done = subprocess.run(
        ["node", *map(str, arguments)], capture_output=True, text=True, timeout=200, **options
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def browse(task, **job):
    """What a browser saw, as tests/web/browser.mjs tells it."""
    job = {k: str(v) if isinstance(v, Path) else v for k, v in job.items()}
    return json.loads(node(SOURCE / "tests/web/browser.mjs", json.dumps({"task": task, **job})))


def page_of(folder, name, *runs, options=()):
    page = folder / f"{name}.html"
    sonde("report", *runs, "--format", "html", "-o", page, *options)
    return page


def document(page):
    text = page.read_text()
    start = text.index('id="sonde-document">') + len('id="sonde-document">')
    return json.loads(text[start : text.index("</script>", start)])


def training(folder, workers, steps=300):
    """tests/web/training.py, profiled."""
    return run(
        folder / f"run{workers}",
        "/usr/bin/python3", SOURCE / "tests/web/training.py", steps, workers,
        options=["--name", f"workers-{workers}", "--interval", "50ms"],
        env=PYTHON,
    )  # fmt: skip


HOSTILE = """
import sonde
names = [
    "</script><script>window.hacked=1</script>",
    "<img src=x onerror='window.hacked=1'>",
    "<!--<script>", "]]>", "&lt;script&gt;window.hacked=1",
    "A" * 10000,
    "\\u202egnp.exe\\u202c \\u05e9\\u05dc\\u05d5\\u05dd \\u0645\\u0631\\u062d\\u0628\\u0627",
    "javascript:window.hacked=1", "${window.hacked=1}", "\\"><svg onload=window.hacked=1>",
    "\\x1b[31mred\\x07", "\\n\\r\\t", "__proto__", "constructor", "\\U0001f680" * 50,
]
phases = ["data_loading", "forward", "backward", "optimizer", None]
def down(depth):
    if depth:
        with sonde.zone(names[depth % len(names)]):
            down(depth - 1)
for n in names:
    sonde.metric(n, 1.0)
    sonde.param(n[:200], n)
for i in range(COUNT):
    name = names[i % len(names)]
    with sonde.zone(name, phase=phases[i % 5]):
        with sonde.zone(names[(i * 7) % len(names)]):
            pass
    if i % 1000 == 0:
        sonde.step()
        down(200)
"""


def hostile_run(folder, count):
    """Names that want to be scripts, everywhere a name can be."""
    script = folder / "<img src=x onerror=hacked=1>.py"
    script.write_text(HOSTILE.replace("COUNT", str(count)))
    evil = "</script><script>window.hacked=1</script>"
    return run(
        folder / "hostile", "/usr/bin/python3", script, evil,
        options=["--name", evil, "--tag", f"x={evil}", "--interval", "50ms"], env=PYTHON,
    )  # fmt: skip

"""Install this checkout into .venv with some of its extras, and show how far pip is.

python3 install.py emulator

It needs Python and its pip alone. ``pip install -q`` says nothing for a minute, and without ``-q``
it writes more than 200 lines.
"""

import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parent
VENV = (sys.executable, "-m", "venv", ".venv")
PIP = (".venv/bin/python", "-m", "pip", "install", "--disable-pip-version-check")
_CLEAR = "\r\x1b[K"


def told(line: str) -> str:
    """Return what a line of pip's output tells about its progress; '' if nothing."""
    word, _, rest = line.partition(" ")
    if word in ("Collecting", "Processing"):
        return f"collecting {rest.split()[0].rpartition('/')[2]}"
    if line.startswith("Building wheel"):
        return "building a wheel"
    if line.startswith("Installing collected packages:"):
        return f"installing {rest.count(',') + 1} packages"
    return ""


def show(lines: Iterable[str], terminal: bool) -> None:
    """Print what pip does: on a terminal in one line, elsewhere line by line."""
    start = time.monotonic()
    for step in filter(None, map(told, lines)):
        text = f"{time.monotonic() - start:4.0f} s  {step}"[
            : shutil.get_terminal_size().columns - 1
        ]
        print(f"{_CLEAR}{text}" if terminal else text, end="" if terminal else "\n", flush=True)
    print(end=_CLEAR if terminal else "", flush=True)


def install(extras: list[str]) -> int:
    """Make the environment and run pip in it; return the exit status of what failed, or 0."""
    print("Installing into .venv; takes about a minute", flush=True)
    made = subprocess.run(VENV, cwd=ROOT, check=False).returncode
    if made:
        return made
    what = f".[{','.join(extras)}]" if extras else "."
    with subprocess.Popen([*PIP, what], cwd=ROOT, stdout=subprocess.PIPE, text=True) as pip:
        show(pip.stdout or (), terminal=sys.stdout.isatty())
    if pip.returncode == 0:
        print(f"Installed: {ROOT / '.venv/bin/container-update'}", flush=True)
    return pip.returncode


if __name__ == "__main__":
    try:
        sys.exit(install(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("\nstopped; run it again")

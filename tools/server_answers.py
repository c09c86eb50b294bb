"""Does JupyterLab answer on this machine? `python tools/server_answers.py 8888`: status 0 if so, 1 if not."""

import sys
from urllib.error import URLError
from urllib.request import urlopen

try:
    urlopen(f"http://127.0.0.1:{sys.argv[1]}/api", timeout=5)
except (URLError, OSError):
    sys.exit(1)

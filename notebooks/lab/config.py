"""JupyterLab as `make lab` opens it: at lesson 00, for this machine only, asking nobody for anything."""

import os
import sys
from pathlib import Path

c = get_config()  # noqa: F821 (Jupyter puts it there)
here = Path(__file__).resolve().parent
course = here.parent

# A reader works on copies, without outputs unless `make lab OUTPUTS=1` asks for them; `make lab EDIT=1` opens the
# lessons themselves, for those who change the course.
folder = course
if not os.environ.get("ATTNLIB_EDIT"):
    sys.path.insert(0, str(here))
    import copies

    folder = copies.MINE
    for line in copies.refresh(outputs="ATTNLIB_OUTPUTS" in os.environ):
        print(line, flush=True)

# One thread for each kernel, as the stored outputs were computed with: beside other work, threads that wait for each
# other spin, and a lesson of seconds takes minutes. What is set already stays.
os.environ.setdefault("OMP_NUM_THREADS", "1")

c.ServerApp.ip = "127.0.0.1"
c.ServerApp.allow_root = True  # in a container one is root, and the server is for this machine only
c.ServerApp.root_dir = str(course.parent)
c.LabApp.default_url = f"/lab/tree/{folder.name}/00_start_here.ipynb"
c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
c.LabApp.extension_manager = "readonly"
c.LanguageServerManager.autodetect = False  # else it names twenty that are not there
# Without news there is still the question whether you want news: overrides.json answers it.
c.LabApp.app_settings_dir = str(here)
c.LabApp.custom_css = True  # custom.css, beside this file
c.ServerApp.tornado_settings = {"static_custom_path": [str(here)]}

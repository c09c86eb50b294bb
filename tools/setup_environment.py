import re
def supported(root):
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    low, high = re.search(r'requires-python = ">=3\.(\d+),<3\.(\d+)"', text).groups()
    return "3." + low, "3.%d" % (int(high) - 1)

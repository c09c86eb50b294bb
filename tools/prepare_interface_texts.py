"""Write attnlib/data/interface_texts.csv from JupyterLab's Chinese language pack.

``python tools/prepare_interface_texts.py FOLDER``, where FOLDER is the unpacked wheel of the package
jupyterlab-language-pack-zh-CN 4.5.post3 (``pip download --no-deps jupyterlab-language-pack-zh-CN==4.5.post3``).

A text is taken once, with the first translation that has a Chinese character. Texts that are near each other, in
either language, make a family; families are held out in a drawn order until there are enough texts, those of more
than ten texts never.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import re
from pathlib import Path

from attnlib.data.interface_texts import near_pairs

ROOT = Path(__file__).resolve().parents[1]
PACK = "jupyterlab_language_pack_zh_CN/locale/zh_CN/LC_MESSAGES"
CHINESE = re.compile("[\u4e00-\u9fff]")
HELD_OUT, LARGEST = 300, 10
SHORT = 8  # Chinese texts of fewer characters are alike too easily: "delete" and "remove" are one


def main() -> None:
    """Read, sort, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the unpacked wheel")
    pairs = read(parser.parse_args().folder / PACK)
    apart = held_out(list(pairs), list(pairs.values()))
    with (ROOT / "attnlib/data/interface_texts.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["part", "english", "chinese"])
        for i, pair in enumerate(pairs.items()):
            writer.writerow(["held out" if i in apart else "train", *pair])
    words = sum(len(text.split()) for text in pairs)
    print(
        f"{len(pairs)} pairs, {len(apart)} held out, {words} English words, {sum(map(len, pairs.values()))} characters"
    )


def read(folder: Path) -> dict[str, str]:
    """Each English text with its Chinese, in alphabetical order; runs of blanks are one."""
    pairs: dict[str, str] = {}
    for path in sorted(folder.glob("*.json"), key=lambda path: (path.stem != "jupyterlab", path.stem)):
        for key, translations in json.loads(path.read_text(encoding="utf-8")).items():
            english = " ".join(key.rpartition("\x04")[2].split())  # what stands before is the context
            chinese = " ".join(translations[0].split()) if key else ""
            if english and CHINESE.search(chinese):
                pairs.setdefault(english, chinese)
    return dict(sorted(pairs.items()))


def held_out(english: list[str], chinese: list[str]) -> set[int]:
    """Places of the texts that are held out, whole families of them."""
    family = list(range(len(english)))

    def first(i: int) -> int:
        while family[i] != i:
            family[i] = family[family[i]]
            i = family[i]
        return i

    longer = [i for i, text in enumerate(chinese) if len(text) >= SHORT]
    alike = [(longer[i], longer[j]) for i, j in near_pairs([chinese[i] for i in longer])]
    for i, j in near_pairs(english) + alike:
        family[first(j)] = first(i)
    families: dict[int, list[int]] = {}
    for i in range(len(english)):
        families.setdefault(first(i), []).append(i)
    drawn = list(families.values())
    print("families:", len(drawn), "largest:", sorted(map(len, drawn))[-5:])
    random.Random(0).shuffle(drawn)
    apart: set[int] = set()
    for members in drawn:
        if len(members) <= min(LARGEST, HELD_OUT - len(apart)):
            apart.update(members)
    return apart


if __name__ == "__main__":
    main()

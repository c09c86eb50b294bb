"""The GPT in the book, opened from a file in a real browser: it says what the library says, cut or not."""

from __future__ import annotations

import re
from contextlib import ExitStack
from copy import deepcopy

import numpy as np
import pytest
import torch
from test_book_browser import SEEN, TOO_WIDE, opened, serious

from attnlib import attention
from attnlib.decoding import greedy
from attnlib.interventions import cut
from attnlib.models import pretrained
from attnlib.pretraining import held_out_sample

LAYERS, HEADS = 5, 6
ASK = """async ([tokens, cuts, replaceBy]) => {
  const [{ logits, weights }] = await ask({ tokens, cuts: [cuts], replaceBy, maps: true });
  return [[...logits], weights.map((layer) => layer.map((head) => [...head.slice(-tokens.length)]))];
}"""
# Whether maps are turned round, as figures are on a dark page.
MAPS = """[...document.querySelectorAll(".live canvas")]
  .map((map) => getComputedStyle(map).filter.includes("invert(1)") ? "inverted" : "as it is")"""
READY = "runs !== null && !think.busy"


@pytest.fixture(scope="module")
def model():
    return pretrained("technical-english")


@pytest.fixture(scope="module")
def loaded(browser, book):
    """The page with its model, from a file; and all that it asked for."""
    with opened(browser, "desk") as tab:
        load(tab, book)
        yield tab
        assert [url for url in tab.asked if not url.startswith(("file:", "blob:", "data:"))] == []


@pytest.fixture
def page(loaded):
    """The page as it begins: the made-up word, nothing cut."""
    loaded.evaluate("location.hash = '#begin=0&again'; readAddress()")
    loaded.wait_for_function(READY)
    return loaded


def load(tab, book):
    tab.goto((book / "book" / "cut_a_head.html").as_uri())
    tab.get_by_role("button", name="Load the model").click()
    tab.wait_for_function(READY)
    assert tab.errors == []


def head(tab, name):
    return tab.locator(f"[id='head-{name}']")


def found(tab):
    """The probabilities of the first row, as trained, cut, with the control; None where there is none."""
    tab.wait_for_function(READY)
    cells = tab.locator("#next tbody tr").first.locator("td:not(.bars)").all_inner_texts()
    return [None if text == "–" else float(text.removeprefix("< ")) for text in cells]


def chance(tab, piece):
    """The probability of a piece as trained and with the cut."""
    tab.wait_for_function(READY)
    return tab.evaluate(
        "piece => runs.slice(0, 2).map((run) => run && softmax(run.logits)[bpe.encode(piece)[0]])", piece
    )


@torch.no_grad()
def by_torch(model, tokens, cuts, put):
    """Logits after the last token and every head's last row of weights, from the library."""
    with ExitStack() as stack:
        for layer, heads in zip(model.layers, cuts, strict=True):
            if heads and put == "zero":
                stack.enter_context(cut(layer.self_attention, None, None, heads=heads))
            elif heads:
                hook = layer.self_attention.out_proj.register_forward_pre_hook(its_mean(heads))
                stack.callback(hook.remove)
        out = model(torch.tensor([tokens]), weights=True)
    return out.logits[0, -1].numpy(), [alpha[0, :, -1].numpy() for alpha in out.weights]


def its_mean(heads):
    def replace(_, args):
        rows = args[0].clone().unflatten(-1, (HEADS, -1))  # (1, n, head, number)
        rows[:, :, heads] = rows[:, :, heads].mean(1, keepdim=True)
        return (rows.flatten(-2),)

    return replace


@pytest.mark.parametrize("n", [1, 2, 7, 33, 100, 256])
@pytest.mark.parametrize("put", ["zero", "mean"])
def test_logits_and_weights_are_those_of_torch(page, model, n, put):
    rng = np.random.default_rng(n)
    tokens = rng.integers(0, 4096, n).tolist()
    lowest = [list(range(HEADS)), *[[]] * (LAYERS - 1)]
    drawn = [np.flatnonzero(rng.random(HEADS) < 0.3).tolist() for _ in range(LAYERS)]
    for cuts in ([[]] * LAYERS, drawn, lowest):
        logits, weights = page.evaluate(ASK, [tokens, cuts, put])
        own, maps = by_torch(model[0], tokens, cuts, put)
        np.testing.assert_allclose(logits, own, atol=1e-4)
        for layer, heads in enumerate(cuts):
            kept = [h for h in range(HEADS) if put == "mean" or h not in heads]  # `cut` shows zeros for a cut head
            np.testing.assert_allclose(np.array(weights[layer])[kept], maps[layer][kept], atol=1e-5)


def hostile(rng):
    """A string of what breaks tokenizers: kinds of white space, signs that join, letters of many scripts, our own."""
    spaces = " \n\t\r\x0b\x0c\x1c\x85\xa0\u1680\u2028\u200b\u200d\u3000\ufeff"
    odd = [
        *spaces,
        *"'’\u0301\0½²Ⅷ٣İſß😀\U00010348",
        "<|endoftext|>",
        "<|end",
        "'re",
        "'LL",
        "日本",
        "👩\u200d👧",
        "don't",
    ]
    points = [chr(p) for p in rng.integers(0, 0x30000, 6) if not 0xD800 <= p < 0xE000]
    return "".join(rng.permutation([*rng.choice(odd, 8), *points]))


def test_a_text_becomes_the_same_tokens(page, model):
    rng = np.random.default_rng(0)
    texts = ["", *held_out_sample()[:100], *(hostile(rng) for _ in range(500))]
    tokens = page.evaluate("texts => texts.map((text) => bpe.encode(text))", texts)
    wrong = [text for text, own in zip(texts, tokens, strict=True) if own != model[1].encode(text).ids]
    assert wrong == []
    assert page.evaluate("tokens => tokens.map((row) => bpe.decode(row))", tokens[1:101]) == texts[1:101]


def test_one_head_copies_the_made_up_word(page):
    head(page, "4.2").click()
    assert found(page) == pytest.approx([0.772, 0.014, 0.8], abs=0.05)
    assert page.locator("#heads [data-part=control]").count() == 1
    page.get_by_label("its mean").check()
    assert found(page)[:2] == pytest.approx([0.772, 0.037], abs=0.02)
    page.locator("#text").fill(page.locator("#text").input_value().replace("zorblax", "baxlzor"))
    page.get_by_label("zeros").check()
    assert chance(page, "b") == pytest.approx([0.009, 0.014], abs=0.01)


def test_cutting_each_alone_tells_them_apart(page):
    page.get_by_role("button", name="Cut each alone").click()
    page.wait_for_function("[...document.querySelectorAll('.left')].every((left) => left.textContent)")
    left = dict(zip(page.evaluate("allHeads()"), map(float, page.locator(".left").all_inner_texts()), strict=True))
    assert left.pop("4.2") == pytest.approx(0.014, abs=0.01)
    assert min(left.values()) == pytest.approx(0.523, abs=0.02)
    assert np.median([*left.values()]) == pytest.approx(0.77, abs=0.02)
    head(page, "4.2").click()  # what each leaves alone does not depend on what is cut now, but on what replaces it
    found(page)
    assert head(page, "4.2").locator(".left").inner_text() == ".014"
    page.get_by_label("its mean").check()  # which is asked at once, to compare
    page.wait_for_function("document.getElementById('head-4.2').querySelector('.left').textContent === '.037'")
    page.wait_for_function("document.getElementById('found').textContent.startsWith('On each map')")
    page.locator("#text").fill("mean")
    found(page)
    assert page.locator(".left").all_inner_texts() == [""] * LAYERS * HEADS


def test_heads_below_stand_in_for_one_another(page):
    chain, kept = ["2.0", "2.2", "2.3", "2.5", "3.0"], []
    for name in chain:
        head(page, name).click()
        kept.append(chance(page, "b")[1])
    assert kept == pytest.approx([0.825, 0.66, 0.422, 0.145, 0.009], abs=0.02)
    for others, left in (("2.1,2.4,3.1,3.2,3.3", 0.74), ("2.1,2.4,3.3,3.4,3.5", 0.811)):
        page.evaluate("hash => { location.hash = hash; }", f"#begin=0&cut={others}")
        page.wait_for_function(f"[...cuts].sort().join() === '{others}'")
        assert chance(page, "b")[1] == pytest.approx(left, abs=0.02)


@pytest.mark.parametrize(
    ("begin", "piece", "trained", "heads", "put", "left"),
    [
        ("a repeated list", "t", 0.921, "4.2", "zeros", 0.730),
        ("a repeated list", "t", 0.921, "1.3", "its mean", 0.765),
        ("a docstring", " array", 0.667, "0.2", "zeros", 0.569),
        ("a bracket", ")", 0.410, "2.4", "zeros", 0.005),
        ("a bracket", ")", 0.410, "4.1", "zeros", 0.030),
        ("a bracket", ")", 0.410, "0.2", "zeros", 0.047),
        ("a bracket", ")", 0.410, "2.4", "its mean", 0.186),
        ("a bracket", ")", 0.410, "4.1", "its mean", 0.132),
    ],
)
def test_what_the_page_says_was_found(page, begin, piece, trained, heads, put, left):
    page.get_by_label("Begin with").select_option(begin)
    page.get_by_label(put).check()
    head(page, heads).click()
    assert chance(page, piece) == pytest.approx([trained, left], abs=0.02)


def test_what_the_page_says_of_greedy_loops(model):
    from measure_technical_english import beginnings, repeated  # which loads the model

    starts = beginnings()[:60].split(20)

    def shares(network):
        return [int(repeated([greedy(network, prompts, 100).tolist()])[0]) for prompts in starts]

    assert shares(model[0]) == pytest.approx([61, 54, 64], abs=2)
    for head, wanted in ((2, [37, 36, 56]), (3, [54, 38, 48]), (4, [70, 64, 74])):  # 4.4 is a control
        less = deepcopy(model[0])
        less.layers[4].self_attention.out_proj.weight.data[:, 32 * head : 32 * (head + 1)] = 0
        assert shares(less) == pytest.approx(wanted, abs=2)


def test_ten_tokens_are_written_and_taken_back(page):
    text = page.locator("#text").input_value()
    page.get_by_role("button", name="ten", exact=True).click()
    page.wait_for_function("document.getElementById('text').value.includes('zorblax is True')")
    page.wait_for_function(f"tokens.length === 43 && {READY}")
    for _ in range(10):
        page.get_by_role("button", name="take one back").click()
    assert page.locator("#text").input_value() == text
    head(page, "4.2").click()
    page.locator("#who").select_option("with the cut")
    page.get_by_role("button", name="ten", exact=True).click()
    page.wait_for_function("document.getElementById('text').value.includes('zor is not None')")
    page.wait_for_function(f"tokens.length === 43 && {READY}")
    page.locator("#who").select_option("as trained")


def test_a_control_is_of_the_same_layers_or_it_is_said_that_there_is_none(page):
    for name in ("4.0", "4.1", "2.3"):
        head(page, name).click()
    found(page)
    assert page.evaluate("[alike(), [...control].some((head) => cuts.has(head))]") == [True, False]
    before = page.evaluate("[...control].sort()")
    page.wait_for_function(f"location.hash.includes('control={'%2C'.join(before)}')")
    for name in ("4.2", "4.3"):
        head(page, name).click()
    assert found(page)[2] is None
    assert "more than half of layer 4 is cut" in page.locator("#says").inner_text()
    head(page, "3.3").click(modifiers=["Shift"])
    assert found(page)[2] is not None
    assert "not like for like" in page.locator("#says").inner_text()


def test_a_pressed_token_stays_in_the_sentence(page):
    page.locator("#next").get_by_role("button", name="b", exact=True).click()
    page.locator("#text").fill(page.locator("#text").input_value().replace("zorblax", "baxlzor"))
    assert chance(page, "b")[0] == pytest.approx(0.009, abs=0.01)
    assert page.locator("#says").inner_text().startswith("“b” has 0.00")


def test_a_row_that_is_pressed_while_something_is_computed_waits_for_it(page):
    errors = len(page.errors)
    pressed = "press('4.2', false); document.querySelector('#next tbody button').click()"
    assert page.evaluate(f"() => {{ {pressed}; return think.busy !== null; }}")
    assert found(page)[:2] == pytest.approx([0.772, 0.014], abs=0.05)
    assert page.locator("#next [aria-pressed=true]").count() == 1
    assert len(page.errors) == errors


def test_what_stands_beyond_the_last_position_is_said_and_kept(page):
    page.locator("#text").fill("mean " * 400)
    page.wait_for_function(READY)
    assert re.match(r"The first 256 of \d+ tokens are read", page.locator("#state").inner_text())
    page.get_by_role("button", name="take one back").click()
    assert page.locator("#text").input_value() == "mean " * 400


def test_a_chosen_control_replaces_the_drawn_one_and_another_is_another(page):
    head(page, "4.2").click()
    assert found(page)[2] is not None
    [drawn] = page.evaluate("[...control]")
    page.get_by_role("button", name="Draw another control").click()
    assert found(page)[2] is not None
    assert page.evaluate("[...control]") != [drawn]
    other = next(f"4.{h}" for h in range(6) if f"4.{h}" not in ("4.2", *page.evaluate("[...control]")))
    head(page, other).click(modifiers=["Shift"])
    found(page)
    assert page.evaluate("[...control]") == [other]


def test_the_address_keeps_the_temperature_and_a_broken_one_does_no_harm(page):
    page.locator("#temperature").fill("2")
    page.wait_for_function("location.hash.includes('t=2')")
    page.evaluate("location.hash = '#begin=__proto__&cut=9.9&t=x&put=y'")
    page.wait_for_function(f"document.getElementById('text').value.includes('zorblax') && {READY}")
    assert found(page)[0] == pytest.approx(0.772, abs=0.02)
    assert page.locator("#who option:disabled").count() == 2  # with the cut, with the control: there is neither


def test_an_address_that_is_opened_while_one_is_to_be_written_is_kept(page):
    head(page, "4.2").click()
    page.evaluate("() => { location.hash = '#begin=0&cut=2.4'; writeAddress(); }")  # before the page hears of it
    page.wait_for_function("[...cuts].join() === '2.4'", timeout=10_000)
    assert found(page)[1] is not None
    assert "cut=2.4" in page.evaluate("location.hash")


def test_the_keyboard_alone_cuts_every_head(page):
    page.locator("#heads button[tabindex='0']").focus()
    for key in ["ArrowUp"] * 4 + ["ArrowLeft"] * 5:
        page.keyboard.press(key)
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.id") == "head-1.0"
    page.keyboard.press("ArrowUp")
    names = page.evaluate("allHeads()")
    for name in names:
        focused = page.evaluate("document.activeElement.id")
        assert focused == f"head-{name}"
        page.keyboard.press("Enter")
        page.keyboard.press("ArrowRight")
    assert page.evaluate("cuts.size") == len(names)
    page.keyboard.press("Home")
    assert page.evaluate("document.activeElement.id") == f"head-{names[0]}"
    page.keyboard.press("End")
    page.wait_for_function(READY)  # what is still being computed would say so in place of the refusal
    page.keyboard.press("Shift+Enter")
    assert page.locator("#state").inner_text().startswith("4.5 is cut. A control is another head")
    page.keyboard.press("Enter")
    page.keyboard.press("Shift+Enter")
    page.wait_for_function("control.has('4.5') && !cuts.has('4.5')")
    page.locator("#large").focus()
    page.keyboard.press("ArrowUp")
    assert "(row 31) gives" in page.locator("#value").inner_text()
    page.get_by_role("button", name="Undo all cuts").press("Enter")
    assert found(page)[1:] == [None, None]


def test_a_map_is_looked_at_without_a_cut(page):
    page.get_by_label("look").check()
    head(page, "4.2").click()
    head(page, "3.1").hover()
    page.wait_for_timeout(200)  # a pointer that rests there shows it, unless a press is to show
    assert page.evaluate("[shown, cuts.size]") == ["4.2", 0]
    page.get_by_label("cut", exact=True).check()
    head(page, "2.1").hover()
    page.wait_for_function("shown === '2.1'")


def test_the_pointer_reads_a_weight(page):
    head(page, "4.2").focus()
    box = page.locator("#large").bounding_box()
    page.mouse.move(box["x"] + 12.5 / 33 * box["width"], box["y"] + 32.5 / 33 * box["height"])
    assert page.locator("#value").inner_text() == "“or” (row 32) gives “b” (column 12) 0.426 of its weight."
    page.mouse.move(box["x"] + 20.5 / 33 * box["width"], box["y"] + 15.5 / 33 * box["height"])
    assert "(row 15) cannot see" in page.locator("#value").inner_text()
    page.mouse.move(box["x"] - 30, box["y"] - 30)  # what was only pointed at is given up
    assert "(row 32) gives “b” (column 12)" in page.locator("#value").inner_text()


def test_a_drawn_control_that_is_pressed_is_kept_and_a_second_takes_its_place(page):
    head(page, "4.2").click()
    [drawn] = page.evaluate("[...control]")
    head(page, drawn).click(modifiers=["Shift"])
    assert page.evaluate("[[...control], chosen]") == [[drawn], True]
    other = next(name for name in ("4.0", "4.1") if name != drawn)
    head(page, other).click(modifiers=["Shift"])
    assert page.evaluate("[...control]") == [other]
    head(page, "4.2").click(modifiers=["Shift"])
    assert page.evaluate("[[...cuts], [...control]]") == [["4.2"], [other]]


def test_a_control_that_is_cut_is_drawn_again(page):
    head(page, "4.2").click()
    head(page, "4.0").click(modifiers=["Shift"])
    found(page)
    head(page, "4.0").click()
    assert found(page)[2] is not None
    assert page.evaluate("[...control].length") == 2


def test_the_address_keeps_the_token_in_sight_and_another_beginning_none_of_the_cuts(page):
    page.locator("#next").get_by_role("button", name="b", exact=True).click()
    head(page, "4.2").click()
    page.wait_for_function("location.hash.includes('token=')")
    page.evaluate("() => { followed = null; location.hash += '&again'; }")
    page.wait_for_function("followed !== null")
    found(page)
    assert page.locator("#next [aria-pressed=true]").inner_text() == "b"
    page.get_by_label("Begin with").select_option("a bracket")
    assert found(page)[1:] == [None, None]


def test_begin_again_gives_back_the_text_and_undoes_what_was_set(page):
    text = page.locator("#text").input_value()
    head(page, "4.2").click()
    page.get_by_label("its mean").check()
    page.get_by_label("look").check()
    page.locator("#text").fill("mean")
    page.locator("#temperature").fill("2")
    page.wait_for_function("document.getElementById('says').textContent.startsWith('At temperature 2 “')")
    page.get_by_text("Does the model need one head?").click()
    page.get_by_role("button", name="Begin again").click()
    assert found(page)[1:] == [None, None]
    assert page.evaluate(
        "[temperature(), [...document.querySelectorAll('#questions details')].map(one => one.open)]"
    ) == [
        1,
        [False, True, False, False],
    ]
    assert page.locator("#text").input_value() == text
    assert page.evaluate("[picked('press'), picked('replace')]") == ["cut", "zero"]
    assert page.get_by_role("button", name="Draw another control").is_disabled()


def test_what_each_leaves_alone_says_what_it_is_when_it_comes_back(page):
    page.get_by_role("button", name="Cut each alone").click()
    said = page.locator("#found")
    page.wait_for_function("document.getElementById('found').textContent.startsWith('On each map')")
    assert said.inner_text() == "On each map: “b” with zeros for that head alone; as trained, 0.772."
    text = page.locator("#text").input_value()
    for typed in ("mean", text):
        page.locator("#text").fill(typed)
        found(page)
    assert "as trained, 0.772" in said.inner_text()


@pytest.mark.parametrize("seen", SEEN)
def test_everybody_can_use_it(browser, book, seen):
    with opened(browser, seen) as tab:
        load(tab, book)
        head(tab, "2.4").click()
        assert found(tab)[2] is not None
        assert not tab.evaluate(TOO_WIDE)
        assert serious(tab) == []
        dark = "inverted" if "dark" in seen else "as it is"
        assert tab.evaluate(MAPS) == [dark] * 31
        tab.goto((book / "notebooks" / "06_self_attention.html").as_uri())
        tab.get_by_label("Q: bank, modifier").fill("3")
        assert not tab.evaluate(TOO_WIDE)
        assert serious(tab) == []


def test_four_words_are_the_one_function(browser, book):
    with opened(browser, "desk") as tab:
        tab.goto((book / "notebooks" / "06_self_attention.html").as_uri())
        for label, number in (("Q: bank, water", "-1.5"), ("K: old, noun", "2"), ("V: the, money", "0.5")):
            tab.get_by_label(label).fill(number)
        assert tab.locator("#words-moved").inner_text() == (
            "Moved: 0 of 16 scores; 0 of 16 weights; 4 of 16 numbers of the output (the, old, river, bank)."
        )
        assert tab.locator("#words-output .moved").count() == 4
        q, k, v = (np.reshape(tab.evaluate(f"[...numbers('{name}')]"), (4, 4)).astype(float) for name in "QKV")
        out, weights = attention(q, k, v)
        for name, own in (("weights", weights), ("output", out)):
            shown = tab.locator(f"#words-{name} tbody td").all_inner_texts()
            np.testing.assert_allclose(np.array(shown, float).reshape(4, 4), own, atol=0.006)

"""Lesson 24: answers in any style become a translator, and leave the course in one file."""

import math
import os
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import numpy as np
import pytest
import torch

from attnlib import causal, check, translation
from attnlib.course import Study, progress_file
from attnlib.course.capstone import PARTS, Mine, beside, mistakes
from attnlib.course.capstone.assemble import TEMPLATE, assemble, opened
from attnlib.course.exercises import lesson24
from attnlib.course.grading import registry
from attnlib.course.grading.standalone import standalone
from attnlib.data.corpus import numbers
from attnlib.nn import shift_right

CORPUS = numbers(60, 10)
BATCH = CORPUS.batch(CORPUS.train[:4])  # padded


@pytest.fixture(autouse=True)
def own_progress(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNLIB_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.setattr(progress_file, "_unsaved", progress_file.Progress())
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def loops(Q, K):
    out = np.zeros((len(Q), len(K)))
    for i in range(len(Q)):
        for j in range(len(K)):
            out[i, j] = sum(Q[i, c] * K[j, c] for c in range(Q.shape[1])) / np.sqrt(Q.shape[1])
    return out


def lists(Q, K):
    return np.array([[q @ k / len(q) ** 0.5 for k in K] for q in Q])


def in_torch(scores, mask):
    scores = torch.as_tensor(scores).masked_fill(~torch.as_tensor(mask), -torch.inf)
    return torch.nan_to_num(torch.softmax(scores, dim=-1))


def divided_where(scores, mask):
    with np.errstate(all="ignore"):
        hidden = np.where(mask, scores, -np.inf)
        top = hidden.max(axis=-1, keepdims=True)
        e = np.exp(hidden - np.where(np.isfinite(top), top, 0)) * mask
        total = e.sum(axis=-1, keepdims=True)
        return np.divide(e, total, out=np.zeros_like(e), where=total > 0)


def row_by_row(scores, mask):
    out = np.zeros(scores.shape)
    for i in range(len(scores)):
        if mask[i].any():
            e = np.exp(scores[i][mask[i]] - scores[i][mask[i]].max())
            out[i, mask[i]] = e / e.sum()
    return out


def stacked(x, n_heads):
    return np.stack(np.split(x, n_heads, axis=1))


def with_einsum(heads, W_O):
    return np.einsum("hnd,hdm->nm", heads, W_O.reshape(len(heads), -1, W_O.shape[1]))


def place_by_place(places, d):
    rows = []
    for place in places:
        angles = [place * 10000.0 ** (-2 * i / d) for i in range(d // 2)]
        rows.append([np.sin(angle) for angle in angles] + [np.cos(angle) for angle in angles])
    return np.array(rows)


def rows_of_a_mask(n_q, n_k):
    mask = np.zeros((n_q, n_k), dtype=bool)
    for i in range(n_q):
        mask[i, : n_k - n_q + i + 1] = True
    return mask


def pre_norm(x, attend, network, norm):
    h = x + attend(norm(x))
    return h + network(norm(h))


def post_norm(y, memory, attend, cross, network, norms):
    first, second, third = norms
    y = first(y + attend(y, y, np.tri(len(y), dtype=bool)))
    y = second(y + cross(y, memory, np.ones((len(y), len(memory)), dtype=bool)))
    return third(y + network(y))


def word_by_word(log_p, target, pad):
    total, count = 0.0, 0
    for b in range(target.shape[0]):
        for t in range(target.shape[1]):
            if target[b, t] != pad:
                total = total - log_p[b, t, target[b, t]]
                count += 1
    return total / count


def sorted_places(scores, log_p):
    total = scores[:, None] + log_p
    order = np.argsort(-total, axis=None)[: len(scores)]
    return np.stack(np.unravel_index(order, total.shape), axis=1)


def sorted_pairs(scores, log_p):
    pairs = [(scores[b] + log_p[b, w], b, w) for b in range(len(scores)) for w in range(log_p.shape[1])]
    pairs.sort(key=lambda pair: -pair[0])
    return np.array([(b, w) for _, b, w in pairs[: len(scores)]])


def divided_in_place(Q, K):
    total = np.dot(Q, K.T)
    np.divide(total, np.sqrt(Q.shape[1]), out=total)
    return total


def by_index(n_q, n_k):
    mask = np.zeros((n_q, n_k), bool)
    mask[np.tril_indices(n_q, n_k - n_q, n_k)] = True
    return mask


def largest_where(scores, mask):
    largest = np.max(scores, axis=-1, keepdims=True, where=mask, initial=-1e300)
    e = np.exp(scores - largest, where=mask, out=np.zeros_like(scores))
    total = e.sum(axis=-1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)


def listed_and_added(heads, W_O):
    return np.sum([head @ part for head, part in zip(heads, np.split(W_O, len(heads)), strict=True)], axis=0)


def mean_where(log_p, target, pad):
    return -np.mean(np.take_along_axis(log_p, target[..., None], axis=2)[..., 0], where=target != pad)


def place_by_pair(Q, K):
    out = np.zeros((len(Q), len(K)))
    for i, j in np.ndindex(*out.shape):
        out[i, j] = Q[i] @ K[j]
    return out / len(K[0]) ** 0.5


class Softmax:
    axis = -1

    def __call__(self, scores, mask):
        hidden = np.where(mask, scores, -np.inf)
        top = hidden.max(axis=self.axis, keepdims=True)
        e = np.exp(hidden - np.where(np.isfinite(top), top, 0))
        total = e.sum(axis=self.axis, keepdims=True)
        return e / np.where(total > 0, total, 1)


class OfTheLast(Softmax):
    """All of it is the other's."""


def by_a_class(scores, mask):
    return OfTheLast()(scores, mask)


def decorated(function):
    return function


@decorated
def with_a_decorator(Q, K):
    return Q @ K.T / np.sqrt(Q.shape[1])


STYLES = [
    ("03.1", divided_in_place),
    ("03.1", place_by_pair),
    ("03.1", with_a_decorator),
    ("09.1", by_index),
    ("09.2", largest_where),
    ("09.2", by_a_class),
    ("07.2", listed_and_added),
    ("11.3", mean_where),
    ("03.1", loops),
    ("03.1", lists),
    ("09.2", in_torch),
    ("09.2", divided_where),
    ("09.2", row_by_row),
    ("07.1", stacked),
    ("07.2", with_einsum),
    ("08.1", place_by_place),
    ("09.1", rows_of_a_mask),
    ("10.3", pre_norm),
    ("11.4", post_norm),
    ("11.3", word_by_word),
    ("14.1", sorted_places),
    ("14.1", sorted_pairs),
]


def gradients(model):
    model.zero_grad()
    model.loss(BATCH.source, BATCH.target).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def test_the_librarys_formulas_are_the_librarys_layers():
    model = Mine().model(CORPUS, n_layers=2)
    theirs = beside(model)
    shifted = shift_right(BATCH.target)
    torch.testing.assert_close(model(BATCH.source, shifted), theirs(BATCH.source, shifted))
    torch.testing.assert_close(model.loss(BATCH.source, BATCH.target), theirs.loss(BATCH.source, BATCH.target))


@pytest.mark.parametrize("exercise", PARTS)
def test_the_formula_of_a_part_is_a_right_answer(exercise, capsys):
    mine = Mine()
    part = getattr(opened(TEMPLATE), PARTS[exercise])

    def converted(*given):
        return part(*(torch.as_tensor(x) if isinstance(x, np.ndarray) else x for x in given))

    if exercise not in ("10.3", "11.4"):  # whose functions are NumPy's there
        check(exercise, converted)
        assert "right" in capsys.readouterr().out
    assert mine.answers == {}


@pytest.mark.parametrize(("exercise", "answer"), STYLES, ids=lambda x: getattr(x, "__name__", x))
def test_an_answer_in_any_style_is_the_part_that_check_called_right(exercise, answer, capsys):
    check(exercise, answer)
    assert f"{exercise} right" in capsys.readouterr().out
    mine = Mine()
    mine.use(exercise)
    assert list(mine.answers) == [exercise], capsys.readouterr().out
    [far] = mine.compare(CORPUS).values()
    assert far < 1e-12
    model, plain = mine.model(CORPUS), Mine().model(CORPUS)
    torch.testing.assert_close(gradients(model), gradients(plain))
    assert model.at_once is (answer is not row_by_row)
    source = BATCH.source[0][BATCH.source[0] != 0]
    assert model.write(source, n_max=4) == plain.write(source, n_max=4)


@pytest.mark.parametrize("exercise", [one for one in PARTS if mistakes(one)])
def test_a_mistake_is_in_the_part_that_it_was_put_into(exercise):
    """Of each exercise at least one, and those that are equal here are few."""
    seen = 0
    for part in mistakes(exercise).values():
        mine = Mine()
        mine.put(exercise, part)
        [far] = mine.compare(CORPUS).values()
        seen += isinstance(far, str) or far > 1e-6
    assert seen


def test_a_step_of_the_search_that_is_wrong_only_for_some_beams_is_seen():
    mine = Mine()
    mine.put("14.1", mistakes("14.1")["probabilities added"])
    assert mine.compare(numbers())["14.1 beam_step"] >= 1


def test_what_is_not_solved_is_named_and_the_library_stands_in(capsys):
    mine = Mine()
    mine.use("03.1")
    assert "03.1 scores: not solved yet" in capsys.readouterr().out
    assert mine.answers == {}
    assert repr(mine) == "The 10 parts are the library's."


def test_an_answer_that_was_solved_and_not_kept_is_told_apart(capsys):
    progress_file.mark("03.1")
    Mine().use("03.1")
    assert "03.1 scores: your answer was right, but what it was is not kept" in capsys.readouterr().out


def with_float(Q, K):
    return np.array([[math.sqrt(1.0) * float(q @ k) / math.sqrt(len(q)) for k in K] for q in Q])


def copied(Q, K):
    return torch.tensor(Q) @ torch.tensor(K).T / len(Q.T) ** 0.5


@pytest.mark.parametrize("answer", [with_float, copied])
def test_a_part_that_loses_the_gradient_is_named(answer):
    mine = Mine()
    mine.put("03.1", answer)
    with pytest.raises(ValueError, match=r"03\.1 (loses the gradient|cannot be run on tensors)"):
        mine.model(CORPUS)


def changed_in_place(x, attend, network, norm):
    h = x.copy()
    h += attend(norm(h))
    h += network(norm(h))
    return h


def test_a_part_that_changes_what_the_gradient_needs_is_named():
    mine = Mine()
    mine.put("10.3", changed_in_place)
    with pytest.raises(ValueError, match=r"10\.3 changes an array .* a = a \+ b in place of a \+= b"):
        mine.model(CORPUS)


def out_of_numpy(Q, K):
    Q, K = torch.from_numpy(Q), torch.from_numpy(K)
    return (Q @ K.T / Q.shape[1] ** 0.5).numpy()


def test_a_line_that_cannot_be_run_on_tensors_is_shown():
    mine = Mine()
    mine.put("03.1", out_of_numpy)
    with pytest.raises(ValueError, match=r"at `Q, K = torch\.from_numpy.*torch\.as_tensor\(x\)"):
        mine.model(CORPUS)


def test_a_slow_part_is_named_and_a_quick_one_is_not(capsys):
    mine = Mine()
    mine.put("11.4", post_norm)
    mine.model(CORPUS)
    assert capsys.readouterr().out == ""
    mine.put("09.2", row_by_row)
    mine.model(CORPUS)
    assert "times as many steps" in (said := capsys.readouterr().out)
    assert "09.2 masked_softmax alone" in said


@pytest.mark.parametrize("order", [(2, 1, 0), (0, 1, 1)])
def test_norms_in_another_order_are_seen_before_they_are_trained(order):
    def other_norms(y, memory, attend, cross, network, norms):
        first, second, third = [norms[i] for i in order]
        y = first(y + attend(y, y, np.tri(len(y), dtype=bool)))
        y = second(y + cross(y, memory, np.ones((len(y), len(memory)), dtype=bool)))
        return third(y + network(y))

    mine = Mine()
    mine.put("11.4", other_norms)
    assert mine.compare(CORPUS)["11.4 decoder_layer"] > 1e-2


def test_a_right_answer_that_could_not_be_kept_is_not_called_missing(capsys):
    check("09.2", Softmax())
    mine = Mine()
    mine.use("09.2")
    assert "your answer was right, but what it was is not kept" in capsys.readouterr().out
    assert mine.answers == {}


def by_the_library(n_q, n_k):
    return causal(n_q, n_k)


def test_an_answer_that_needs_the_course_is_refused():
    with pytest.raises(ValueError, match=r"09\.1 uses causal of attnlib"):
        Mine().put("09.1", by_the_library)


def test_an_exercise_that_is_no_part_is_refused_with_those_that_are():
    with pytest.raises(ValueError, match=r"exercise must be .*03\.1.*got '01\.1'"):
        Mine().use("01.1")


def test_two_answers_with_helpers_of_one_name_do_not_meet():
    def softmax(x):
        return x * 0

    def scores(Q, K):
        return Q @ K.T / SCALE + softmax(Q @ K.T)

    source = assemble({"03.1": standalone(scores), "09.1": "softmax = 3\n\n\nanswer = lambda n, m: softmax\n"})
    module = opened(source)
    assert module.causal(1, 1) == 3
    x = torch.ones(2, 4)
    torch.testing.assert_close(module.scores(x, x), torch.full((2, 2), 4 / SCALE))


SCALE = 2.0


def test_standalone_takes_helpers_constants_closures_and_recursion():
    depth = 2

    def twice(x, n=depth):
        return x if n == 0 else 2 * twice(x, n - 1)

    def answer(x):
        return twice(x) * SCALE + depth + np.sqrt(4.0)

    namespace = {}
    source = standalone(answer)
    exec(source, namespace)
    assert namespace["answer"](1) == answer(1) == 12.0
    assert "import numpy as np" in source


def test_standalone_finds_a_lambda_in_a_line_of_several():
    pair = (lambda x: x + 1), (lambda x: x - 1)
    for one in pair:
        namespace = {}
        exec(standalone(one), namespace)
        assert namespace["answer"](5) == one(5)


def test_standalone_is_not_led_astray_by_a_word_in_a_comment():
    [answer] = [lambda x: x + 1]  # a lambda: short, as a lambda is
    namespace = {}
    exec(standalone(answer), namespace)
    assert namespace["answer"](5) == 6


def test_standalone_refuses_what_cannot_be_written_down():
    table = np.ones(3)

    def answer(x):
        return x + table

    with pytest.raises(ValueError, match="it uses table, ndarray"):
        standalone(answer)
    with pytest.raises(ValueError, match="no function that was written here"):
        standalone(math.sqrt)
    with pytest.raises(ValueError, match="wide has a decorator"):
        standalone(wide)
    with pytest.raises(ValueError, match="it uses root, vectorize"):
        standalone(lambda x: root(x))


@torch.no_grad()
def wide(x):
    return x


@np.vectorize
def root(x):
    return x**0.5


def test_the_file_runs_where_there_is_torch_and_nothing_else(tmp_path):
    mine = Mine()
    for exercise, answer in STYLES:
        mine.put(exercise, answer)
    model = mine.model(CORPUS)
    mine.write(tmp_path / "my_transformer.py", model, CORPUS)
    alone = tmp_path / "alone"  # a folder of packages with torch and what it requires
    alone.mkdir()
    packages = Path(torch.__file__).parent.parent
    names = {name.split(";")[0].split(">")[0].split("<")[0].split("=")[0].strip() for name in requires("torch")}
    modules = {name.replace("-", "_") for name in names} | {"torch", "torchgen", "functorch", "mpmath", "markupsafe"}
    for module in modules:
        for found in (*packages.glob(module), *packages.glob(f"{module}.py"), *packages.glob(f"{module}-*.dist-info")):
            (alone / found.name).symlink_to(found)
    (alone / "jinja2").exists() or (alone / "jinja2").symlink_to(packages / "jinja2")
    program = (
        f"import sys, runpy; sys.path.insert(0, {str(alone)!r}); sys.argv = ['my_transformer.py', 'ein', 'hundert'];"
        f"runpy.run_path({str(tmp_path / 'my_transformer.py')!r}, run_name='__main__');"
        "assert not {'numpy', 'attnlib'} & set(sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-W", "ignore", "-c", program], capture_output=True, text=True, env=os.environ
    )
    assert run.returncode == 0, run.stderr
    source = torch.tensor(CORPUS.source.encode(["ein", "hundert"]))
    assert run.stdout.split() == CORPUS.target.decode(model.write(source))


def test_the_file_computes_as_precisely_as_its_parts_were_checked(tmp_path):
    mine = Mine()
    mine.put("09.2", largest_where)
    mine.write(tmp_path / "my_transformer.py", mine.model(CORPUS), CORPUS)
    run = subprocess.run(
        [sys.executable, "-I", tmp_path / "my_transformer.py", "ein"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


def test_the_parts_that_leak_are_those_of_exercise_24_1():
    source = torch.tensor([[4, 5, 6, 7, 8, 9]])
    target, other = torch.tensor([[1, 4, 5, 6, 7]]), torch.tensor([[1, 4, 5, 8, 9]])
    found = []
    for number, part in lesson24.PARTS.items():
        mine = Mine()
        mine.put(*part)
        model = mine.model(CORPUS)
        change = (model(source, target) - model(source, other))[:, :3].abs().max()
        found += [number] if change > 1e-4 else []
    assert found == registry.find("24.1").reference()


def test_the_parts_that_stop_in_the_study_still_stop():
    rows = Study(Path(__file__).parents[1] / "studies" / "parts.md").rows("Each mistake")
    exercise_of = {part: exercise for exercise, part in PARTS.items()}
    stopped = [(exercise_of[row[0]], row[1]) for row in rows if len(row) < 6 and row[0] in exercise_of]
    assert len(stopped) == 6
    corpus = translation.numbers()  # as there
    batch = corpus.batch(corpus.train[:4])
    for exercise, name in stopped:
        mine = Mine()
        mine.put(exercise, mistakes(exercise)[name])
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            mine.model(corpus).loss(batch.source, batch.target).backward()


def test_every_part_is_an_exercise():
    assert all(registry.find(one) for one in PARTS)

"""Questions about numbers, asked in words: what is to be done stands before the number. The data of lesson 18."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attnlib._base.checks import check_at_least_one, check_one_of, check_size
from attnlib._base.seeds import Seed, generator
from attnlib.data.corpus import Corpus
from attnlib.data.examples import Example
from attnlib.data.numbers import english, german
from attnlib.data.text import Vocabulary

__all__ = ["TASKS", "ask", "asked"]

TASKS: dict[str, Callable[..., list[str]]] = {
    "english": english,
    "digits": lambda n: list(str(n)),
    "parity": lambda n: ["odd" if n % 2 else "even"],
    "larger": lambda a, b: english(max(a, b)),
}
LARGEST_ASKED, LARGEST_COMPARED = 9_999, 99  # at most seven words behind the colon


def ask(task: str, *numbers: int) -> Example:
    """A question and its answer. ``task`` is one of `TASKS`; "larger" takes two ``numbers``, the others one.

    Raises ``ValueError`` for another task, or for as many numbers as it does not take.

    >>> for question in (ask("digits", 87), ask("larger", 21, 87)):
    ...     print(*question.source, "→", *question.target)
    digits : sieben und achtzig → 8 7
    larger : ein und zwanzig oder sieben und achtzig → eighty seven
    """
    check_one_of("task", task, TASKS)
    if len(numbers) != (2 if task == "larger" else 1):
        raise ValueError(f"numbers must be two for 'larger' and one for the others; got {len(numbers)} for {task!r}")
    words = [word for number in numbers for word in ("oder", *german(number))][1:]
    facts = {"task": task, "numbers": tuple(int(number) for number in numbers)}
    return Example((task, ":", *words), tuple(TASKS[task](*numbers)), facts=facts)


def asked(train: int = 3_000, held_out: int = 200, *, tasks: Sequence[str] = tuple(TASKS), seed: Seed = 0) -> Corpus:
    """Questions of each task, ``train`` to train on and ``held_out``, with one vocabulary for all text.

    No number is asked about twice, and for "larger" no two numbers in the same order: who is asked for the digits of
    a number has never been asked for its English. Held out are the same numbers for each task. Numbers go to 9,999,
    those that are compared to 99. The vocabulary holds the words of all `TASKS`, whichever are asked.

    Raises ``ValueError`` when a task is not known, or there are too few numbers.

    >>> asked(300, 20)
    Corpus of 1200 examples and 80 held out; 84 source and 84 target tokens
    """
    train, held_out = check_at_least_one("train", train), check_size("held_out", held_out)
    for task in tasks:
        check_one_of("tasks", task, TASKS)
    single = [task for task in TASKS if task != "larger"]
    rng = generator(seed)
    numbers = rng.permutation(LARGEST_ASKED + 1)
    pairs = [divmod(pair, LARGEST_COMPARED + 1) for pair in rng.permutation((LARGEST_COMPARED + 1) ** 2).tolist()]
    if held_out + len(single) * train > len(numbers):
        raise ValueError(
            f"train and held_out must leave each number to one task: {held_out} + {len(single)} * {train} of "
            f"{len(numbers)} numbers"
        )
    apart: dict[str, list[Example]] = {}
    shown: dict[str, list[Example]] = {}
    for i, task in enumerate(single):
        apart[task] = [ask(task, n) for n in numbers[:held_out].tolist()]
        own = numbers[held_out + i * train : held_out + (i + 1) * train].tolist()
        shown[task] = [ask(task, n) for n in own]
    apart["larger"] = [ask("larger", *pair) for pair in pairs[:held_out]]
    shown["larger"] = [ask("larger", *pair) for pair in pairs[held_out : held_out + train]]
    words = [
        *map(english, range(100)),
        *map(german, range(100)),
        english(9_100),
        german(9_100),
        ["oder", "even", "odd"],
    ]
    vocabulary = Vocabulary([*words, [*TASKS, ":", *"0123456789"]])
    parts = ([example for task in tasks for example in part[task]] for part in (shown, apart))
    return Corpus(*parts, vocabulary, vocabulary)

// Four words by hand: one head of size four, every number of Q, K and V to be changed.

const WORDS = ["the", "old", "river", "bank"];
const FEATURES = ["water", "money", "noun", "modifier"];
// Keys and values are the rows of lesson 06's table. Only two words ask: river for water, bank for a modifier.
const START = {
  Q: [[0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 2]],
  K: [[0, 0, 0, 0], [0, 0, 0, 1], [2, 0, 0, 2], [1, 1, 2, 0]],
  V: [[0, 0, 0, 0], [0, 0, 0, 1], [2, 0, 0, 2], [1, 1, 2, 0]],
};

const CAPTIONS = {
  Q: "Q, queries: yours to change", K: "K, keys: yours to change", V: "V, values: yours to change",
  scores: "scores = Q Kᵀ / √4", weights: "weights = softmax of each row", output: "output = weights · V",
};

/** A table with a word to a row; `cell` makes what stands in row i and column j. */
function table(name, heads, cell) {
  return make("table", { id: `words-${name}` },
    make("caption", { textContent: CAPTIONS[name] }),
    make("thead", {}, make("tr", {}, make("td"), ...heads.map((head) => make("th", { scope: "col", textContent: head })))),
    make("tbody", {}, ...WORDS.map((word, i) => make("tr", {},
      make("th", { scope: "row", textContent: word }), ...heads.map((_, j) => cell(i, j))))));
}

function given(name) {
  return table(name, FEATURES, (i, j) => make("td", {}, make("input", {
    type: "number", step: 0.5, value: START[name][i][j],
    ariaLabel: `${name}: ${WORDS[i]}, ${FEATURES[j]}`,
  })));
}

function computed(name, heads) {
  return table(name, heads, () => make("td"));
}

const cells = (name) => [...document.querySelectorAll(`#words-${name} td`)].slice(1);
const numbers = (name) => Float32Array.from(document.querySelectorAll(`#words-${name} input`), (input) => +input.value);

/** All of it anew, and which numbers moved. */
function compute() {
  const { scores, weights, out } = attention(numbers("Q"), numbers("K"), numbers("V"), 4, 4);
  const moved = Object.entries({ scores, weights, output: out }).map(([name, values]) => {
    const all = cells(name), texts = [...values].map((value) => value.toFixed(2).replace("-0.00", "0.00"));
    const other = texts.map((text, i) => all[i].textContent !== "" && all[i].textContent !== text);
    all.forEach((cell, i) => {
      cell.textContent = texts[i];
      cell.classList.toggle("moved", other[i]);
      if (name !== "weights") return;
      cell.style.background = `rgb(${colour(values[i])})`;
      cell.style.color = values[i] > 0.2 ? "#fff" : "#000";
    });
    return [name, other];
  });
  return moved.map(([name, other]) => {
    const rows = new Set(other.flatMap((is, i) => (is ? [WORDS[Math.floor(i / 4)]] : [])));
    const count = other.filter(Boolean).length;
    return `${count} of 16 ${name === "output" ? "numbers of the output" : name}${count ? ` (${[...rows].join(", ")})` : ""}`;
  });
}

function fill() {
  const moved = make("p", { id: "words-moved", textContent: "Nothing has moved yet." });
  const again = make("button", { type: "button", textContent: "As it was" });
  moved.setAttribute("role", "status");
  again.onclick = () => {
    for (const name in START)
      document.querySelectorAll(`#words-${name} input`).forEach((input, i) => { input.value = START[name].flat()[i]; });
    compute();
    moved.textContent = "As it was.";
  };
  const place = document.getElementById("four-words");
  place.append(
    make("h2", { textContent: "Four words, one head" }),
    make("p", {}, "Change a number, and all that follows from it is computed at once. ", make("em", { textContent:
      "Before you do: if you change one number in the query of bank, which weights will move? One in the key of " +
      "river? One in the value of river?" })),
    make("div", { className: "words" },
      given("Q"), given("K"), given("V"),
      computed("scores", WORDS), computed("weights", WORDS), computed("output", FEATURES)),
    moved, make("p", { className: "bar" }, again,
      make("span", {}, "The same function, thirty times over, in a model that reads: ",
        make("a", { href: "../book/cut_a_head.html", textContent: "what does one head do?" }))));
  compute();
  for (const input of place.querySelectorAll("input"))
    input.oninput = () => { moved.textContent = `Moved: ${compute().join("; ")}.`; };
}

fill();

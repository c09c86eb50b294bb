// Maps of weights, as the course draws them: pale at zero, perceptually uniform, on a scale of square roots.

// matplotlib's magma, turned round, at nine places.
const MAGMA = ["fcfdbf", "fec287", "fb8761", "e55064", "b5367a", "812581", "4f127b", "1c1044", "000004"]
  .map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));

/** The colour of a weight from 0 to 1: red, green, blue. */
function colour(weight) {
  const place = 8 * Math.sqrt(Math.min(Math.max(weight, 0), 1)), left = Math.min(Math.floor(place), 7);
  return MAGMA[left].map((from, i) => Math.round(from + (place - left) * (MAGMA[left + 1][i] - from)));
}

const SHADES = Array.from({ length: 256 }, (_, i) => colour(i / 255)); // looked up, for maps of thousands of weights

/** Draw n × n weights, a pixel each. */
function paint(canvas, weights, n) {
  canvas.width = canvas.height = n;
  const picture = new ImageData(n, n);
  for (let i = 0; i < n * n; i++) {
    const [red, green, blue] = SHADES[Math.round(255 * weights[i])];
    picture.data.set([red, green, blue, 255], 4 * i);
  }
  canvas.getContext("2d").putImageData(picture, 0, 0);
}

/** An element with properties, and what it contains. */
function make(tag, properties = {}, ...inside) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...inside);
  return element;
}

/** One of many buttons takes the Tab key; arrow keys move among them, `wide` to a row. */
function arrows(group, wide = 1) {
  group.addEventListener("keydown", (event) => {
    const all = [...group.querySelectorAll("button")], at = all.indexOf(document.activeElement);
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -wide, ArrowDown: wide, Home: -at, End: all.length - 1 - at }[event.key];
    if (at < 0 || step === undefined) return;
    event.preventDefault(); // at the edge, too: the page does not scroll
    all[at + step]?.focus();
  });
  group.addEventListener("focusin", (event) => {
    for (const button of group.querySelectorAll("button")) button.tabIndex = button === event.target ? 0 : -1;
  });
}

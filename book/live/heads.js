// The page on which heads are cut: what it shows, and what happens when something is pressed.

// A text, and what to ask of it: each question, and how to answer it here.
const BEGINNINGS = {
  "a made-up word": ["zorblax : float\n    The zorblax of the model.\nfoo : int\n    The foo. Only used if zor", {
    "Where would a head have to look?":
      "“zorblax” is made up. The text ends within its third mention, after “zor”, and the likeliest next token is “b”, as " +
      "in the first two. Look at heads, and see where the orange lies.",
    "Does the model need one head?":
      "Press “b” in the table, so that the page keeps to it. Cut a head, see what is left, press it again to put it back, " +
      "and try the next; or let the page cut each alone.",
    "Is it this word that it copies?":
      "Write “baxlzor”, the same letters in another order, instead of the first two “zorblax”. Does it still say “b”, and " +
      "does the head still matter?",
    "Does it take that head?": "Begin again. Can you bring “b” below 0.1 without touching the layer of that head?",
  }],
  "a repeated list": ["mean, variance, kurtosis, skew, mean, variance, kur", {
    "Is the second “kurtosis” copied from the first?":
      "Or would the model finish the word anyway? Press “t” in the table, delete the first “kurtosis”, and see.",
    "How much of that is one head?": "Begin again, and write down what was left without the first “kurtosis”. How near to that can you come by cutting a single head, with zeros, and with its mean?",
  }],
  "a docstring": ["Compute the mean along the specified axis.\n\nParameters\n----------\na :", {
    "Is there one head that this answer needs?":
      "The model has read a lot of text like this. Say first how low you would have to see it fall before you call a " +
      "head needed; then cut each alone.",
  }],
  "a bracket": ["The mean (or the average of the values", {
    "Which head, replaced by zeros, leaves least of the answer?": "A bracket is open. Cut each alone.",
    "Does the bracket need this head more than any other?": "Put the mean in its place, and look again.",
  }],
};
const ARMS = ["trained", "cut", "control"];
const SCRIPT = document.currentScript.src;
const TOUCHED = matchMedia("(hover: none)").matches; // there a press is the one way to see a map
const $ = (id) => document.getElementById(id);

let ask, bpe, config;
let tokens = [], beyond = 0; // what it reads of the text, and how many tokens stand after that
let cuts = new Set(), control = new Set(); // heads by name, "4.2": layer 4, head 2
let chosen = false; // did the reader choose the control?
let runs = null; // as trained, cut, control: { logits, weights }, null where there is nothing to run
let shown = "2.0", asks = 0, asked = null; // the head, the row and the column of the large map; null: its largest weight
let pinned = [0, null]; // the row and the column to which the map returns when the pointer leaves it
let followed = null; // the token that the sentence speaks of; the likeliest unless one was pressed
let alone = null; // what is left of a token with each head cut alone: { of: which question that answers, left: by head }

// --- the model --------------------------------------------------------------------------------------------------------

function load() {
  $("load").querySelector("button").disabled = true;
  $("load").querySelector("[role=status]").textContent = "Loading …";
  const script = make("script", { src: new URL("weights.js", SCRIPT).href, onload: begin });
  script.onerror = () => {
    script.remove();
    $("load").querySelector("button").disabled = false;
    $("load").querySelector("[role=status]").textContent = "The model could not be fetched. (It is _static/weights.js, which make book writes.) Press to try again.";
  };
  document.head.append(script);
}

function begin() {
  config = SHIPPED.config;
  bpe = new BytePairs(SHIPPED.tokenizer);
  ask = startThread(SHIPPED);
  for (const name in BEGINNINGS) $("begin").add(new Option(name));
  for (let l = 0; l < config.n_layer; l++) {
    $("heads").append(make("span", { textContent: `layer ${l}` }));
    for (let h = 0; h < config.n_head; h++) $("heads").append(button(`${l}.${h}`));
  }
  $("load").hidden = true;
  $("bench").hidden = false;
  arrows($("heads"), config.n_head);
  arrows($("tokens"));
  if (TOUCHED) pick("press", "look");
  readAddress().then(() => { $("begin").focus(); $("bench").scrollIntoView(); });
}

/** What comes after the tokens, three ways. While it is computed, only the newest wish is kept. */
async function think() {
  think.again = true;
  if (think.busy) return think.busy;
  const late = setTimeout(() => { say("Computing …"); $("bench").ariaBusy = "true"; }, 200);
  think.busy = (async () => {
    while (think.again) {
      think.again = false;
      const all = [[], ...[cuts, control].filter((heads) => heads.size).map(byLayer)];
      const begun = performance.now(), n = tokens.length;
      const answers = await ask({ tokens: [...tokens], cuts: all, replaceBy: picked("replace"), maps: true });
      if (think.again) continue; // something was pressed meanwhile
      runs = [answers[0], cuts.size ? answers[1] : null, control.size ? answers.at(-1) : null];
      const held = beyond ? `The first ${n} of ${n + beyond} tokens are read` : `${n} of ${config.n_positions} tokens`;
      say(`${held}, ${Math.round(performance.now() - begun)} ms`);
      show();
    }
    clearTimeout(late);
    $("bench").ariaBusy = "false";
    think.busy = null;
  })();
  return think.busy;
}

const picked = (name) => document.querySelector(`[name=${name}]:checked`).value;
const pick = (name, value) => { document.querySelector(`[name=${name}][value=${value}]`).checked = true; };
const nameOf = (l, h) => `${l}.${h}`;
const byLayer = (heads) => Array.from({ length: config.n_layer }, (_, l) => inLayer(heads, l));
const inLayer = (heads, l) => [...Array(config.n_head).keys()].filter((h) => heads.has(nameOf(l, h)));

// --- what is cut, and the control -----------------------------------------------------------------------------------

/** As many other heads of each layer, drawn; none if too few are left. Those of before stay where they can, or go. */
function drawControl(others = false) {
  if (chosen) return;
  const before = control;
  control = new Set();
  for (let l = 0; l < config.n_layer; l++) {
    const free = [...Array(config.n_head).keys()].filter((h) => !cuts.has(nameOf(l, h))).map((h) => nameOf(l, h));
    const kept = free.filter((head) => before.has(head)), fresh = free.filter((head) => !before.has(head));
    const order = others ? [...shuffled(fresh), ...kept] : [...kept, ...shuffled(fresh)];
    for (const head of order.slice(0, config.n_head - free.length)) control.add(head);
  }
  if (tooFew().length) control.clear();
}

function shuffled(list) {
  return list.map((item) => [Math.random(), item]).sort(([a], [b]) => a - b).map(([, item]) => item);
}

/** Layers of which more than half is cut: they have no control of as many. */
const tooFew = () => byLayer(cuts).flatMap((heads, l) => (2 * heads.length > config.n_head ? [l] : []));

const alike = () => String(byLayer(cuts).map((heads) => heads.length)) === String(byLayer(control).map((heads) => heads.length));

function press(head, forControl) {
  if (forControl && cuts.has(head)) return say(`${head} is cut. A control is another head: choose one, or undo the cut.`);
  if (forControl) choose(head);
  else {
    if (!cuts.delete(head)) cuts.add(head);
    control.delete(head);
  }
  chosen = control.size > 0 && (chosen || forControl); // without any of them, one is drawn again
  changed();
}

/** A drawn control that is pressed is kept. Another takes its place, or that of one in its layer which would be too many. */
function choose(head) {
  if (!chosen && control.has(head)) return;
  if (!chosen) control.clear();
  if (control.delete(head)) return;
  const l = head[0], most = inLayer(cuts, l).length, there = inLayer(control, l);
  if (most && there.length >= most) control.delete(nameOf(l, there[0]));
  control.add(head);
}

function undo() {
  cuts.clear();
  control.clear();
  chosen = false;
}

function changed() {
  drawControl();
  remember();
  return think();
}

function remember() {
  clearTimeout(writeAddress.rest); // browsers refuse an address that changes with every letter
  writeAddress.rest = setTimeout(writeAddress, 200);
}

// --- text and address -----------------------------------------------------------------------------------------------

function read() {
  const all = [0, ...bpe.encode($("text").value)]; // token 0 begins every page
  tokens = all.slice(0, config.n_positions);
  beyond = all.length - tokens.length;
  pin(tokens.length - 1);
  listTokens();
  return changed();
}

function beginWith(name) {
  $("begin").value = name;
  followed = null;
  $("questions").replaceChildren(...Object.entries(BEGINNINGS[name][1]).map(([question, how], i) =>
    make("details", { name: "question", open: i === 0 }, make("summary", { textContent: question }), make("p", { textContent: how }))));
  $("text").value = BEGINNINGS[name][0];
  $("text").scrollTop = $("text").scrollHeight; // what comes next comes behind the last line
}

/** #text=…&cut=4.2&control=4.0&put=mean&t=0.5&token=66; the text only where it is none of the four, which have a number. */
function writeAddress() {
  if (location.hash !== writeAddress.last) return; // another was opened, and is read next
  const name = $("begin").value, parts = new URLSearchParams();
  parts.set("begin", Object.keys(BEGINNINGS).indexOf(name));
  if ($("text").value !== BEGINNINGS[name][0]) parts.set("text", $("text").value);
  if (cuts.size) parts.set("cut", [...cuts].sort().join());
  if (control.size) parts.set("control", [...control].sort().join());
  if (picked("replace") !== "zero") parts.set("put", picked("replace"));
  if (temperature() !== 1) parts.set("t", temperature());
  if (followed !== null) parts.set("token", followed);
  location.replace(`#${parts}`);
  writeAddress.last = location.hash;
}

function readAddress() {
  writeAddress.last = location.hash;
  const parts = new URLSearchParams(location.hash.slice(1)), names = Object.keys(BEGINNINGS);
  const heads = (key) => new Set((parts.get(key) ?? "").split(",").filter((head) => $(`head-${head}`)));
  beginWith(names[Number(parts.get("begin"))] ?? names[0]);
  if (parts.has("text")) $("text").value = parts.get("text");
  if (bpe.pieces[parts.get("token")] !== undefined) followed = Number(parts.get("token"));
  cuts = heads("cut");
  control = new Set([...heads("control")].filter((head) => !cuts.has(head)));
  chosen = control.size > 0 && !alike();
  warm(Number(parts.get("t")) || 1);
  pick("replace", parts.get("put") === "mean" ? "mean" : "zero");
  return read();
}

// --- writing --------------------------------------------------------------------------------------------------------

async function write(count) {
  const turn = write.turn = {}; // typing takes it away
  for (let i = 0; i < count; i++) {
    await think.busy; // what is on the page may be of an earlier text
    if (write.turn !== turn) return;
    const p = softmax(runs[$("who").value].logits, temperature());
    const token = $("how").value === "drawn" ? drawn(p) : p.indexOf(Math.max(...p));
    if (!token) return say("The page ends here: the next token is the end.");
    if (tokens.length === config.n_positions) return say(`It reads no more than ${config.n_positions} tokens.`);
    tokens.push(token);
    await rewritten();
  }
}

function drawn(p) {
  let left = Math.random();
  return Math.max(p.findIndex((share) => (left -= share) < 0), 0);
}

function rewritten() {
  $("text").value = bpe.decode(tokens.slice(1));
  $("text").scrollTop = $("text").scrollHeight;
  pin(tokens.length - 1);
  listTokens();
  return changed();
}

function say(words) {
  $("state").textContent = words;
}

// --- showing --------------------------------------------------------------------------------------------------------

const temperature = () => +$("temperature").value;
const warm = (degrees) => { $("temperature").value = degrees; $("degrees").value = temperature().toFixed(1); };
const three = (p) => (p < 0.0005 ? "< 0.001" : p.toFixed(3));
const nextNamed = (token) => (token ? named(token) : "(the end)");
const named = (token) => (token ? bpe.decode([token]) : "▮").replace(/\n/g, "⏎").replace(/ /g, "␣").replace(/\t/g, "⇥");

function show() {
  for (const name of allHeads()) {
    const head = $(`head-${name}`);
    paint(head.querySelector("canvas"), weightsOf(name), tokens.length);
    head.dataset.part = cuts.has(name) ? "cut" : control.has(name) ? "control" : "";
    head.ariaPressed = cuts.has(name);
  }
  $("draw").disabled = !cuts.size;
  for (const option of $("who").options) option.disabled = !runs[option.value];
  if (!runs[$("who").value]) $("who").value = 0;
  showNext();
  showLarge();
}

/** What a head is called, and what is left with it alone cut, if that was asked of what is shown. */
function labelHeads() {
  const left = alone?.of === question() ? alone.left : null;
  const least = left && Object.values(left).sort((a, b) => parseFloat(a) - parseFloat(b))[0]; // "< 0.001" is none, and first
  $("found").textContent = left ? whatIsLeft(left) : "";
  for (const name of allHeads()) {
    const [l, h] = name.split("."), head = $(`head-${name}`);
    head.querySelector(".left").textContent = (left?.[name] ?? "").replace("0.", ".");
    head.toggleAttribute("data-least", left?.[name] === least);
    head.ariaLabel = `Layer ${l}, head ${h}${control.has(name) ? ", control" : ""}` +
      (left?.[name] ? `; with it alone cut, ${left[name]}` : "");
  }
}

function whatIsLeft(left) {
  const done = allHeads().every((head) => left[head]), what = picked("replace") === "mean" ? "its mean" : "zeros";
  const trained = three(softmax(runs[0].logits, temperature())[subject()]);
  return `${done ? "On each map" : "Cutting each alone"}: “${nextNamed(subject())}” with ${what} for that head alone; as trained, ${trained}.`;
}

const allHeads = () => byLayer({ has: () => true }).flatMap((heads, l) => heads.map((h) => nameOf(l, h)));

function weightsOf(name) {
  const [l, h] = name.split(".");
  return (runs[1] ?? runs[0]).weights[l][h];
}

function button(name) {
  const head = make("button", { type: "button", id: `head-${name}`, tabIndex: name === shown ? 0 : -1 },
    make("canvas"), make("span", { className: "left" }));
  const look = () => { shown = name; if (runs) showLarge(); };
  head.onclick = (event) => {
    const does = event.shiftKey ? "control" : picked("press");
    if (does === "look") look();
    else press(name, does === "control");
  };
  head.onfocus = look;
  head.onpointerenter = () => {
    if (picked("press") !== "look") button.rest = setTimeout(look, 150); // not on the way to another, or to the large map
  };
  head.onpointerleave = () => clearTimeout(button.rest);
  return head;
}

function listTokens() {
  $("tokens").replaceChildren(...tokens.map((token, j) => {
    const piece = make("button", { type: "button", textContent: named(token), tabIndex: j === tokens.length - 1 ? 0 : -1 });
    piece.onclick = () => { pin(j); showLarge(); };
    return piece;
  }));
  $("tokens").scrollTop = $("tokens").scrollHeight;
}

/** Let the large map return to this row, and this column: without one, to its largest weight. */
function pin(row, column = null) {
  [asks, asked] = pinned = [row, column];
}

/** The column that the large map reads. */
function column() {
  const row = weightsOf(shown).subarray(asks * tokens.length, (asks + 1) * tokens.length);
  return asked ?? row.indexOf(Math.max(...row));
}

/** The large map, and the tokens, each as dark as its weight for the token that asks. */
function showLarge() {
  const n = tokens.length, weights = weightsOf(shown);
  if (weights.length !== n * n) return; // tokens have changed since
  document.querySelector("#heads .shown")?.classList.remove("shown");
  $(`head-${shown}`).classList.add("shown");
  $("name").textContent = shown + (cuts.has(shown) ? ", cut" : "");
  paint($("large"), weights, n);
  const at = column(), place = { row: asks, column: at, n };
  for (const name in place) $("map").style.setProperty(`--${name}`, place[name]);
  $("large").setAttribute("aria-label", `Weights of head ${shown}: a row for each of ${n} tokens that ask, a column for each that is asked. Arrow keys move.`);
  const [asking, other] = [`“${named(tokens[asks])}” (row ${asks})`, `“${named(tokens[at])}” (column ${at})`];
  const back = asks < n - 1 ? " Press the last token to ask from there again." : "";
  $("value").textContent = (at > asks ? `${asking} cannot see ${other}, which comes later.`
    : `${asking} gives ${other} ${three(weights[asks * n + at])} of its weight.`) + back;
  [...$("tokens").children].forEach((piece, j) => {
    const weight = weights[asks * n + j];
    piece.style.setProperty("--weight", `${100 * Math.sqrt(weight)}%`);
    piece.setAttribute("aria-pressed", j === asks);
    piece.title = `${three(weight)} of the weight`;
  });
}

function point(event) {
  const box = $("large").getBoundingClientRect(), n = tokens.length;
  const place = (at, size) => Math.min(Math.max(Math.floor((n * at) / size), 0), n - 1);
  asks = place(event.clientY - box.top, box.height);
  asked = place(event.clientX - box.left, box.width);
  if (event.type === "pointerdown") pin(asks, asked);
  showLarge();
}

function walk(event) {
  const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [0, 0];
  if (!down && !right) return;
  event.preventDefault();
  const inside = (place) => Math.min(Math.max(place, 0), tokens.length - 1);
  pin(inside(asks + down), right || asked !== null ? inside(column() + right) : null);
  showLarge();
}

function showNext() {
  const p = runs.map((run) => run && softmax(run.logits, temperature()));
  const top = (q, count) => (q ? [...q.keys()].sort((a, b) => q[b] - q[a]).slice(0, count) : []);
  const rows = [...new Set([...top(p[0], 6), ...top(p[1], 4), ...(followed === null ? [] : [followed])])].sort((a, b) => p[0][b] - p[0][a]);
  $("next").tBodies[0].replaceChildren(...rows.map((token) => make("tr", {},
    make("th", { scope: "row" }, follower(token)),
    make("td", { className: "bars" }, ...ARMS.map((arm, i) => {
      const bar = make("span", { className: arm });
      bar.style.width = `${100 * (p[i]?.[token] ?? 0)}%`;
      return bar;
    })),
    ...ARMS.map((arm, i) => make("td", { className: arm, textContent: p[i] ? three(p[i][token]) : "–" })))));
  $("says").textContent = sentence(p, subject());
  labelHeads();
}

/** While something is computed the answers on the page are of other cuts: they are shown anew when it is done. */
function showNextAgain() {
  if (!think.busy) showNext();
}

/** The token that is spoken of. */
const subject = () => followed ?? runs[0].logits.indexOf(Math.max(...runs[0].logits));

/** A token that can be pressed: the sentence keeps speaking of it. */
function follower(token) {
  const name = make("button", { type: "button", textContent: nextNamed(token), ariaPressed: token === followed });
  name.onclick = () => {
    const again = alone?.of === question(); // what is left of this token, then
    followed = token === followed ? null : token;
    showNextAgain();
    if (again) cutEachAlone();
    [...$("next").tBodies[0].rows].flatMap((row) => [...row.querySelectorAll("button")]).find((other) => other.textContent === name.textContent)?.focus();
  };
  return name;
}

function sentence(p, token) {
  const list = (heads) => [...heads].sort().join(", ");
  const warm = temperature() === 1 ? "" : `At temperature ${temperature()} `;
  const has = `${warm}“${nextNamed(token)}” has ${three(p[0][token])} as trained`;
  const cut = cuts.size ? `, ${three(p[1][token])} with ${list(cuts)} cut` : "";
  const beside = control.size ? `, ${three(p[2][token])} with the control, ${list(control)}` : "";
  if (!cuts.size) return `${has}${beside}. You have cut nothing.`;
  const few = tooFew();
  if (!control.size && few.length)
    return `${has}${cut}. There is no control: more than half of layer ${few.join(" and ")} is cut, so as many others are not left in it. Cut fewer, or choose a control yourself.`;
  const unlike = control.size && !alike() ? " The control is not like for like: it has more heads, or fewer, in some layer." : "";
  return `${has}${cut}${beside}.${unlike}`;
}

/** What "cut each alone" asks: as long as this is the same, what it found stays on the maps. */
const question = () => String([subject(), temperature(), picked("replace"), ...tokens]);

/** Each head cut alone: what is left of the token's probability, written on its map. */
async function cutEachAlone() {
  await think.busy;
  const token = subject(), of = question(), left = {};
  alone = { of, left };
  for (const name of allHeads()) {
    const [{ logits }] = await ask({ tokens: [...tokens], cuts: [byLayer(new Set([name]))], replaceBy: picked("replace") });
    if (question() !== of) return; // something else was asked meanwhile
    left[name] = three(softmax(logits, temperature())[token]);
    labelHeads();
  }
}

// --- what can be pressed --------------------------------------------------------------------------------------------

$("load").querySelector("button").onclick = load;
$("begin").onchange = () => {
  write.turn = null;
  undo();
  pick("press", TOUCHED ? "look" : "cut");
  pick("replace", "zero");
  warm(1);
  beginWith($("begin").value);
  read();
};
$("again").onclick = () => {
  const open = [...$("questions").children].map((question) => question.open), token = followed;
  $("begin").onchange();
  [...$("questions").children].forEach((question, i) => { question.open = open[i]; });
  followed = token; // of the question that was being followed
};
$("text").oninput = () => { write.turn = null; read(); };
$("temperature").oninput = () => { $("degrees").value = temperature().toFixed(1); showNextAgain(); remember(); };
$("one").onclick = () => write(1);
$("ten").onclick = () => write(10);
$("back").onclick = () => {
  write.turn = null;
  if (beyond) return say(`It reads only the first ${tokens.length} tokens: shorten the text first.`);
  if (tokens.length > 1) tokens.pop();
  rewritten();
};
$("mend").onclick = () => { undo(); changed(); };
$("draw").onclick = () => { chosen = false; drawControl(true); changed(); };
$("alone").onclick = cutEachAlone;
for (const radio of document.querySelectorAll("[name=replace]")) radio.onchange = () => {
  const again = $("found").textContent !== ""; // to compare zeros with the mean
  changed();
  if (again) cutEachAlone();
};
$("large").onpointermove = $("large").onpointerdown = point;
$("large").onpointerleave = () => { pin(...pinned); if (runs) showLarge(); };
$("large").onkeydown = walk;
addEventListener("hashchange", () => { if (ask && location.hash !== writeAddress.last) readAddress(); });

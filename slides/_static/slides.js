// Before reveal.js starts: light or dark, what is shown step by step, and drawings that are uncovered.

// As the address says (?theme=dark), as chosen with the key D, or as the machine is set.
const chosen = new URLSearchParams(location.search).get("theme") || kept();
if (chosen) document.documentElement.dataset.theme = chosen;

function kept(theme) {
  try {
    if (theme) localStorage.setItem("theme", theme);
    return localStorage.getItem("theme");
  } catch {
    return theme; // a browser may keep nothing for a page from a file
  }
}

function exchange() {
  const now = document.documentElement.dataset.theme;
  const dark = now ? now === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = kept(dark ? "light" : "dark") || (dark ? "light" : "dark");
}

// What stands below the first thing on a slide comes step by step. So does the first below a claim in quotation marks,
// and what answers a heading that asks, unless it is uncovered of itself. A title, a list and a formula's sentence stay whole.
for (const slide of document.querySelectorAll(".slides > section > section:not(:has(h1))")) {
  const parts = [...slide.children].filter((part) => !part.matches("h2, h3, aside, .fragment"));
  const heading = slide.querySelector("h2, h3")?.textContent ?? "";
  const answers = parts[0]?.matches(".table, .output, .drawn, figure:has([data-steps=''])");
  const waits = heading.startsWith("\u201c") || (heading.includes("?") && answers);
  for (const part of parts.slice(waits ? 0 : 1)) part.classList.add("fragment");
}

// A drawing in steps is uncovered from the left or from below; its title, at the top, stays in sight.
function uncover(slide) {
  for (const image of slide.querySelectorAll("img:not([data-steps=''])")) {
    const [from, ...cuts] = image.dataset.steps.split(" ");
    const done = slide.querySelectorAll(".step.visible").length;
    const share = done < cuts.length ? Number(cuts[done]) : 1;
    const scale = Math.min(image.clientWidth / image.naturalWidth, image.clientHeight / image.naturalHeight);
    const [w, h] = [image.naturalWidth * scale, image.naturalHeight * scale];
    const [x, y] = [(image.clientWidth - w) / 2, (image.clientHeight - h) / 2];
    const right = x + (from === "left" ? share : 1) * w, top = y + (from === "left" ? 0 : 1 - share) * h;
    const title = y + 0.08 * h;
    image.style.clipPath = `polygon(${[[x, y], [x + w, y], [x + w, title], [right, title], [right, y + h], [x, y + h],
      [x, top], [right, top], [right, title], [x, title]].slice(0, from === "left" ? 6 : 10).map(([a, b]) => `${a}px ${b}px`)})`;
  }
}

// How wide the text in a box is, in the pixels of a slide.
function written(box) {
  const range = document.createRange();
  range.selectNodeContents(box);
  return (range.getBoundingClientRect().width * box.offsetWidth) / box.getBoundingClientRect().width;
}

// A formula or a line of print that is wider than the slide is set smaller, and a table that is too wide or too high.
function fit(slide) {
  for (const part of slide.querySelectorAll("div.math:has(mjx-math), pre")) {
    const inner = part.querySelector("mjx-math");
    const wide = inner ? inner.offsetWidth / part.clientWidth : written(part) / (part.clientWidth - 48);
    if (wide > 1) part.style.fontSize = `${Math.floor(parseFloat(getComputedStyle(part).fontSize) / wide)}px`;
  }
  for (const table of slide.querySelectorAll("table")) {
    const parts = [...slide.children].filter((part) => !part.matches("aside"));
    const tooLarge = () => table.offsetWidth > table.parentElement.clientWidth ||
      parts.reduce((sum, part) => sum + part.offsetHeight + 26, 104) > 720;
    table.style.fontSize = ""; // its fonts may have come since
    for (let size = 31; size > 12 && tooLarge(); size--) table.style.fontSize = `${size}px`;
  }
}

const startWith = {
  width: 1280, height: 720, margin: 0, center: false, hash: true, slideNumber: "c/t",
  transition: "none", backgroundTransition: "none", controls: false, pdfSeparateFragments: false,
  pdfMaxPagesPerSlide: 1,
};

const paged = new Promise((done) => Reveal.on("pdf-ready", done));
Reveal.on("ready", async () => {
  Reveal.addKeyBinding({ keyCode: 68, key: "D", description: "Light or dark" }, exchange);
  if (!/print-pdf/.test(location.search)) {
    const update = () => [uncover, fit].forEach((then) => then(Reveal.getCurrentSlide()));
    for (const event of ["slidechanged", "fragmentshown", "fragmenthidden", "resize"]) Reveal.on(event, update);
    update();
  } else {
    await paged;
    for (const page of document.querySelectorAll(".pdf-page iframe")) { // reveal.js loads it when its slide is shown
      page.src = page.dataset.src || page.src;
      await new Promise((loaded) => page.addEventListener("load", loaded));
    }
  }
  await window.MathJax?.startup?.promise;
  await document.fonts.ready;
  Reveal.layout();
  document.querySelectorAll(".slides section section, .pdf-page > section").forEach(fit);
  window.deckReady = true;
});

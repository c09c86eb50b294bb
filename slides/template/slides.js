// Light or dark: as the address says (?theme=dark), as chosen with the key D, or as the machine is set.
const asked = new URLSearchParams(location.search).get("theme");

function kept(theme) {
  try {
    if (theme) localStorage.setItem("theme", theme);
    return localStorage.getItem("theme");
  } catch {
    return theme; // a browser may keep nothing for a page from a file
  }
}

function paint(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
}

function exchange() {
  const now = document.documentElement.dataset.theme;
  const dark = now ? now === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  paint(kept(dark ? "light" : "dark"));
}

paint(asked || kept());

window.MathJax = {
  tex: { inlineMath: [["$", "$"]], displayMath: [["$$", "$$"]] },
  svg: { fontCache: "local" },
  options: { enableMenu: false },
};

// A drawing that is shown in steps is uncovered from the left or from below; its title, at the top, stays in sight.
function uncover(slide) {
  for (const image of slide ? slide.querySelectorAll("img[data-steps]") : []) {
    const [from, ...cuts] = image.dataset.steps.split(" ");
    const done = slide.querySelectorAll(".step.visible").length;
    const shown = 100 * (done < cuts.length ? cuts[done] : 1);
    const path = from === "left"
      ? `100% 6%, ${shown}% 6%, ${shown}% 100%, 0 100%`
      : `100% 8%, 0 8%, 0 ${100 - shown}%, 100% ${100 - shown}%, 100% 100%, 0 100%`;
    image.style.clipPath = `polygon(0 0, 100% 0, ${path})`;
  }
}

async function startDeck() {
  const printed = /print-pdf/.test(location.search);
  await Reveal.initialize({
    width: 1280, height: 720, margin: 0, center: false, hash: true, slideNumber: "c/t",
    transition: "none", backgroundTransition: "none", controls: false, pdfSeparateFragments: false,
    plugins: [RevealNotes],
  });
  Reveal.addKeyBinding({ keyCode: 68, key: "D", description: "Light or dark" }, exchange);
  if (!printed) {
    const update = () => uncover(Reveal.getCurrentSlide());
    for (const event of ["slidechanged", "fragmentshown", "fragmenthidden"]) Reveal.on(event, update);
    update();
  }
  await MathJax.startup.promise;
  // The speaker's window has no style to hide what is there for screen readers.
  for (const twice of document.querySelectorAll("aside.notes mjx-assistive-mml")) twice.remove();
  await document.fonts.ready;
  Reveal.layout();
  window.deckReady = true;
}

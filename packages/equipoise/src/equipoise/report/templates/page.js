// The charts in the theme that the reader has chosen, or else in that of the system.
const root = document.documentElement;
const button = document.getElementById("theme");
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
const views = new Map();
let drawings = Promise.resolve();

function theme() {
  return root.dataset.theme || (prefersDark.matches ? "dark" : "light");
}

function specificationOf(chart) {
  const datasets = chart.specification.datasets.map((name) => [name, rowsOf(data.tables[name])]);
  return { ...chart.specification, datasets: Object.fromEntries(datasets) };
}

async function drawAll() {
  const wanted = theme();
  button.textContent = wanted === "dark" ? "Light" : "Dark";
  button.setAttribute("aria-label", `Use the ${wanted === "dark" ? "light" : "dark"} theme`);
  for (const view of views.values()) {
    view.finalize();
  }
  views.clear();
  for (const chart of data.charts) {
    // The page answers between two charts; with another theme the next drawing has its turn.
    await new Promise((resolve) => setTimeout(resolve));
    if (theme() !== wanted) {
      return;
    }
    const options = {
      // Expressions are interpreted: the page's policy forbids making code out of text.
      ast: true,
      config: data.themes[wanted],
      renderer: data.renderer,
      theme: undefined,
      tooltip: { theme: wanted },
      actions: false,
    };
    const place = document.getElementById(chart.anchor);
    const drawn = await vegaEmbed(place, specificationOf(chart), options);
    views.set(chart.anchor, drawn.view);
  }
  root.dataset.drawn = wanted;
}

function draw() {
  drawings = drawings.then(drawAll);
}

button.hidden = false;
button.addEventListener("click", () => {
  root.dataset.theme = theme() === "dark" ? "light" : "dark";
  draw();
});
prefersDark.addEventListener("change", draw);
// A table that is wider than its place says so until it was scrolled to its end.
const wideTables = document.querySelectorAll(".scroll");
const seen = new ResizeObserver((entries) => entries.forEach((entry) => tell(entry.target)));
function tell(place) {
  const hidden = place.scrollWidth - place.clientWidth;
  place.classList.toggle("wider", hidden > 1);
  place.classList.toggle("read", place.scrollLeft >= hidden - 1);
}
for (const place of wideTables) {
  seen.observe(place);
  place.addEventListener("scroll", () => tell(place), { passive: true });
}
window.addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("main details:not(.numbers)")) {
    details.open = true;
  }
});
draw();

// Draws the charts, in the theme that the reader has chosen or else in the theme of the system.
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
  const currentTheme = theme();
  const otherTheme = currentTheme === "dark" ? "light" : "dark";
  button.textContent = otherTheme === "light" ? "Light" : "Dark";
  button.setAttribute("aria-label", `Use the ${otherTheme} theme`);
  for (const view of views.values()) {
    view.finalize();
  }
  views.clear();
  for (const chart of data.charts) {
    // Let the browser react to the reader between two charts.
    await new Promise((resolve) => setTimeout(resolve));
    if (theme() !== currentTheme) {
      // The theme has changed, so another drawing of all charts is waiting.
      return;
    }
    const options = {
      // Vega interprets expressions, because the page's policy forbids to compile text to code.
      ast: true,
      config: data.themes[currentTheme],
      renderer: data.renderer,
      theme: undefined,
      tooltip: { theme: currentTheme },
      actions: false,
    };
    const container = document.getElementById(chart.anchor);
    const embedded = await vegaEmbed(container, specificationOf(chart), options);
    views.set(chart.anchor, embedded.view);
  }
  root.dataset.drawn = currentTheme;
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
// A table that is wider than its container has a note, until it is scrolled to its end.
const containers = document.querySelectorAll(".scroll");
const resizes = new ResizeObserver((entries) => entries.forEach((entry) => updateNote(entry.target)));
function updateNote(container) {
  const hiddenWidth = container.scrollWidth - container.clientWidth;
  container.classList.toggle("wider", hiddenWidth > 1);
  container.classList.toggle("read", container.scrollLeft >= hiddenWidth - 1);
}
for (const container of containers) {
  resizes.observe(container);
  container.addEventListener("scroll", () => updateNote(container), { passive: true });
}
window.addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("main details:not(.numbers)")) {
    details.open = true;
  }
});
draw();

(() => {
  "use strict";
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const data = JSON.parse(document.getElementById("figures").textContent);

  function rowsOf(table) {
    const read = Object.entries(table.columns).map(([name, column]) =>
      Array.isArray(column)
        ? [name, (row) => column[row]]
        : [name, (row) => column.levels[column.codes[row]]],
    );
    return Array.from({ length: table.rows }, (_, row) =>
      Object.fromEntries(read.map(([name, at]) => [name, at(row)])),
    );
  }

  function theme() {
    return root.dataset.theme || (prefersDark.matches ? "dark" : "light");
  }

  function specificationOf(chart) {
    const datasets = chart.specification.datasets.map((name) => [name, rowsOf(data.tables[name])]);
    return { ...chart.specification, datasets: Object.fromEntries(datasets) };
  }

  const drawn = [];
  let drawings = Promise.resolve();

  async function drawAll() {
    const wanted = theme();
    button.textContent = wanted === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Use the ${wanted === "dark" ? "light" : "dark"} theme`);
    for (const result of drawn.splice(0)) {
      result.finalize();
    }
    for (const chart of data.charts) {
      const options = {
        // Expressions are interpreted: the page's policy forbids making code out of text.
        ast: true,
        config: data.themes[wanted],
        renderer: data.renderer,
        theme: undefined,
        tooltip: { theme: wanted },
        actions: { export: true, source: false, compiled: false, editor: false },
        downloadFileName: `equipoise-${chart.anchor}`,
      };
      const place = document.getElementById(chart.anchor);
      drawn.push(await vegaEmbed(place, specificationOf(chart), options));
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
  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("main details:not(.chart details)")) {
      details.open = true;
    }
  });
  draw();
})();

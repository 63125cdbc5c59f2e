// Downloads of a figure: its data, its picture, its table. Nothing is fetched.
const MOST_ROWS = 200;

function hand(address, name) {
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
}

function handBlob(blob, name) {
  const address = URL.createObjectURL(blob);
  hand(address, name);
  // The download begins in its own time: the address must live until then.
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

async function pictureOf(anchor, ending) {
  await drawings;
  const view = views.get(anchor);
  if (ending === "svg") {
    return new Blob([await view.toSVG()], { type: "image/svg+xml" });
  }
  const canvas = await view.toCanvas(2);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

async function downloadOf(anchor, ending) {
  const chart = charts.get(anchor);
  if (ending === "csv") {
    return new Blob([csvOf(rowsOfFigure(chart))], { type: "text/csv;charset=utf-8" });
  }
  if (ending === "json") {
    const rows = JSON.stringify(rowsOfFigure(chart), null, 1);
    return new Blob([rows, "\n"], { type: "application/json" });
  }
  return pictureOf(anchor, ending);
}

function tableOf(rows, title) {
  const table = document.createElement("table");
  const columns = columnsOf(rows);
  const shown = rows.slice(0, MOST_ROWS);
  const left = rows.length - shown.length;
  table.createCaption().textContent =
    title + (left ? `: the first ${shown.length} of ${rows.length} rows; CSV and JSON hold all` : "");
  const head = table.createTHead().insertRow();
  for (const name of columns) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = name.replaceAll("_", " ");
    head.append(cell);
  }
  const body = table.createTBody();
  for (const row of shown) {
    const line = body.insertRow();
    for (const name of columns) {
      line.insertCell().textContent = wordOf(row[name]);
    }
  }
  return table;
}

function fill(details) {
  const anchor = details.dataset.chart;
  const place = document.createElement("div");
  place.className = "scroll";
  place.tabIndex = 0;
  place.setAttribute("role", "group");
  place.setAttribute("aria-label", details.querySelector("summary").textContent);
  const title = document.getElementById(`${anchor}-title`).textContent;
  place.append(tableOf(rowsOfFigure(charts.get(anchor)), title));
  details.append(place);
}

for (const place of document.querySelectorAll(".download")) {
  place.hidden = false;
  place.addEventListener("click", async (event) => {
    const { chart, picture } = place.dataset;
    const ending = event.target.dataset.as;
    const name = `equipoise-${chart ?? picture}.${ending}`;
    if (ending && picture) {
      hand(document.getElementById(picture).src, name);
    } else if (ending) {
      handBlob(await downloadOf(chart, ending), name);
    }
  });
}
for (const details of document.querySelectorAll(".numbers")) {
  details.hidden = false;
  details.addEventListener("toggle", () => fill(details), { once: true });
}
